//! A Redis server for tests.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::folder::Folder;
use crate::net;
use crate::process::{self, Process, until};
use crate::resp::{self, Reply};
use crate::watchdog::End;
use crate::workspace::in_path;

/// The first version with `SET … NX GET`.
const MIN_VERSION: (u32, u32) = (7, 0);
const START: Duration = Duration::from_secs(30);
const ANSWER: Duration = Duration::from_secs(60);
const LOG: &str = "redis.log";

/// A Redis server on a free port of 127.0.0.1 and on a Unix socket, without persistence.
///
/// Dropping it kills it and removes its folder.
#[derive(Debug)]
pub struct RedisServer {
    process: Mutex<Process>,
    port: u16,
    args: Vec<String>,
    folder: Folder,
}

impl RedisServer {
    /// Starts a server and waits until it answers.
    ///
    /// # Panics
    ///
    /// When `redis-server` is missing, older than 7.0, or doesn't start.
    #[must_use]
    pub fn start() -> Self {
        Self::with_args(&[])
    }

    /// Like [`start`](Self::start), with more arguments for `redis-server`, such as
    /// `&["--maxmemory", "10mb"]`, which take precedence over those of the fixture.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with_args(args: &[&str]) -> Self {
        let folder = Folder::new("redis");
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        for _ in 0..20 {
            let port = net::free_port();
            if let Some(process) = launch(&folder, port, &args) {
                return Self { process: Mutex::new(process), port, args, folder };
            }
        }
        panic!("redis-server finds no free port:\n{}", folder.end_of_log(LOG));
    }

    /// `redis://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// `redis+unix:///…/redis.sock`, the same server without TCP.
    #[must_use]
    pub fn unix_url(&self) -> String {
        format!("redis+unix://{}", self.folder.path().join("redis.sock").display())
    }

    /// The TCP port, the same after a restart.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id. It changes with a restart.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process().pid()
    }

    /// Stops the server (`SIGSTOP`): connections stay open, nothing is answered.
    pub fn freeze(&self) {
        self.process().freeze();
    }

    /// Resumes a frozen server (`SIGCONT`).
    pub fn thaw(&self) {
        self.process().thaw();
    }

    /// Kills the server (`SIGKILL`): connections are reset, new ones are refused.
    pub fn kill(&self) {
        self.process().kill();
    }

    /// Kills the server if it runs, and starts it empty on the same port.
    ///
    /// # Panics
    ///
    /// When another program uses the port.
    pub fn restart(&self) {
        let mut process = self.process();
        process.kill();
        let _ = std::fs::remove_file(self.folder.path().join("dump.rdb"));
        let _ = std::fs::remove_dir_all(self.folder.path().join("appendonlydir"));
        let end = Instant::now() + START;
        *process = loop {
            match launch(&self.folder, self.port, &self.args) {
                Some(process) => break process,
                None if Instant::now() < end => std::thread::sleep(Duration::from_millis(100)),
                None => panic!("redis-server can't restart on port {}", self.port),
            }
        };
    }

    /// Sends one command and returns the reply as text: values as they are, `(nil)` for none,
    /// `(error) …` for a refusal, one line per item of a list.
    ///
    /// # Panics
    ///
    /// When the server doesn't answer within 60 s.
    pub fn command(&self, args: &[&str]) -> String {
        let reply = self.try_command(args, ANSWER);
        reply.unwrap_or_else(|error| panic!("redis-server on {args:?}: {error}")).to_string()
    }

    /// Sends one command, of text or bytes, and returns the unformatted reply.
    ///
    /// # Errors
    ///
    /// When the server can't be reached or doesn't answer in time.
    pub fn try_command<A: AsRef<[u8]>>(&self, args: &[A], timeout: Duration) -> io::Result<Reply> {
        resp::ask(self.port, args, timeout)
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a server and waits until it answers on `port` (and not another one). `None` when it
/// exited because the port is in use.
fn launch(folder: &Folder, port: u16, args: &[String]) -> Option<Process> {
    let log = File::create(folder.path().join(LOG)).expect("a log file in an own folder");
    let mut command = process::command(binary());
    command
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--unixsocket", "redis.sock", "--unixsocketperm", "777"])
        .args(["--save", "", "--appendonly", "no", "--daemonize", "no"])
        .args(["--enable-debug-command", "local"])
        .args(args)
        .current_dir(folder.path())
        .stdout(log.try_clone().expect("a second handle of a log file"))
        .stderr(log);
    let (process, _) = Process::spawn(&mut command, End::Kill);
    let started = until(START, || process.status().is_some() || answers(&process, port));
    assert!(started, "redis-server doesn't answer:\n{}", folder.end_of_log(LOG));
    if process.status().is_none() {
        return Some(process);
    }
    let log = folder.end_of_log(LOG);
    assert!(log.contains("in use"), "redis-server ended at its start:\n{log}");
    None
}

fn answers(process: &Process, port: u16) -> bool {
    let ask = |args: &[&str]| resp::ask(port, args, Duration::from_millis(500));
    let Ok(Reply::Bulk(info)) = ask(&["INFO", "server"]) else {
        return false;
    };
    let expected = format!("process_id:{}\r\n", process.pid());
    String::from_utf8_lossy(&info).contains(&expected)
}

/// The server program, checked once.
fn binary() -> &'static PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let path = in_path("redis-server").unwrap_or_else(|| {
            panic!("redis-server is missing: install the package redis-server, or run scripts/test")
        });
        let output = Command::new(&path).arg("--version").output().expect("redis-server --version");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = version(&text);
        assert!(
            version.is_some_and(|version| version >= MIN_VERSION),
            "{} is too old, {}.{} is needed: {text}",
            path.display(),
            MIN_VERSION.0,
            MIN_VERSION.1,
        );
        path
    })
}

/// Parses `… v=7.0.15 …`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split_once("v=")?.1.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::*;

    const SHORT: Duration = Duration::from_millis(200);

    #[test]
    fn two_servers_hold_different_data() {
        let (one, two) = (RedisServer::start(), RedisServer::start());
        assert_ne!(one.port(), two.port());
        assert_eq!(one.command(&["SET", "key", "value"]), "OK");
        assert_eq!(one.command(&["GET", "key"]), "value");
        assert_eq!(two.command(&["GET", "key"]), "(nil)");
    }

    #[test]
    fn servers_started_by_parallel_threads_do_not_collide() {
        let servers: Vec<RedisServer> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(RedisServer::start)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for (number, server) in servers.iter().enumerate() {
            server.command(&["SET", "number", &number.to_string()]);
        }
        for (number, server) in servers.iter().enumerate() {
            assert_eq!(server.command(&["GET", "number"]), number.to_string());
        }
        assert_eq!(servers.iter().map(RedisServer::port).collect::<HashSet<_>>().len(), 8);
    }

    #[test]
    fn a_frozen_redis_answers_after_it_is_thawed() {
        let redis = RedisServer::start();
        redis.freeze();
        let error = redis.try_command(&["PING"], SHORT).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut));
        redis.thaw();
        assert_eq!(redis.command(&["PING"]), "PONG");
    }

    #[test]
    fn a_killed_redis_restarts_empty_on_its_port() {
        let redis = RedisServer::start();
        let (port, pid) = (redis.port(), redis.pid());
        redis.command(&["SET", "key", "value"]);
        redis.command(&["SAVE"]);
        redis.kill();
        let error = redis.try_command(&["PING"], SHORT).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        redis.restart();
        assert_eq!(redis.port(), port);
        assert_ne!(redis.pid(), pid);
        assert_eq!(redis.command(&["GET", "key"]), "(nil)");
    }

    #[test]
    fn a_frozen_redis_can_be_restarted() {
        let redis = RedisServer::start();
        redis.freeze();
        redis.restart();
        assert_eq!(redis.command(&["PING"]), "PONG");
    }

    #[test]
    fn a_port_in_use_is_detected() {
        let redis = RedisServer::start();
        let folder = Folder::new("redis");
        assert!(launch(&folder, redis.port(), &[]).is_none());
    }

    #[test]
    fn redis_arguments_reach_the_server() {
        let redis = RedisServer::with_args(&["--maxmemory", "3mb"]);
        assert_eq!(redis.command(&["CONFIG", "GET", "maxmemory"]), "maxmemory\n3145728");
        assert!(redis.unix_url().len() < 100);
    }

    #[test]
    fn dropping_removes_process_and_folder() {
        let redis = RedisServer::start();
        let (pid, folder) = (redis.pid(), redis.folder.path().to_path_buf());
        assert!(folder.join("redis.sock").exists());
        drop(redis);
        assert!(process::has_ended(pid));
        assert!(!folder.exists());
    }

    #[test]
    fn redis_versions_are_parsed() {
        assert_eq!(version("Redis server v=7.0.15 sha=00000000:0"), Some((7, 0)));
        assert_eq!(version("Redis server v=6.2.1 sha=0"), Some((6, 2)));
        assert_eq!(version("something else"), None);
    }
}
