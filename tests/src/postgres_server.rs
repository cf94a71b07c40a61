//! A PostgreSQL server for tests.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::folder::Folder;
use crate::postgres_template::{Installation, SUPERUSER, copy_template, initialise, run};
use crate::process::{self, Process, until};
use crate::psql::{ask, without_settings};
use crate::watchdog::End;

const START: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(30);
const ANSWER: Duration = Duration::from_secs(60);
const LOG: &str = "postgres.log";

/// A PostgreSQL server on a Unix socket, with the superuser `postgres` and no passwords.
///
/// It doesn't wait for the disk: it is fast, and loses data when the machine fails. Dropping it
/// stops the server and removes its folder.
#[derive(Debug)]
pub struct PostgresServer {
    process: Mutex<Process>,
    settings: Vec<String>,
    folder: Folder,
}

impl PostgresServer {
    /// Starts a server and waits until it accepts connections.
    ///
    /// All these servers have the same system identifier, as a server and its backup have; see
    /// [`with_new_identity`](Self::with_new_identity).
    ///
    /// # Panics
    ///
    /// When PostgreSQL is missing or doesn't start.
    #[must_use]
    pub fn start() -> Self {
        Self::with_settings(&[])
    }

    /// Like [`start`](Self::start), with settings such as `&["max_connections=20"]`, which take
    /// precedence over those of the fixture.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with_settings(settings: &[&str]) -> Self {
        Self::launch(settings, copy_template)
    }

    /// Like [`start`](Self::start), with its own system identifier; takes about 0.5 s longer.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with_new_identity() -> Self {
        Self::launch(&[], initialise)
    }

    /// The shared server of this test process, started by the first call. Each test uses its own
    /// database of it; see [`create_database`](Self::create_database).
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    #[must_use]
    pub fn shared() -> &'static Self {
        // Statics are not dropped: the watchdog stops the server.
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// Starts a streaming replica of this server. `SELECT pg_wal_replay_pause()` pauses its replay.
    ///
    /// # Panics
    ///
    /// When the copy can't be created or doesn't start.
    #[must_use]
    pub fn start_replica(&self) -> Self {
        Self::launch(&[], |data| {
            let installation = Installation::get();
            let mut command = Command::new(installation.program("pg_basebackup"));
            command
                .args(["-R", "-N", "-c", "fast", "-U", SUPERUSER, "-h"])
                .arg(self.folder.path())
                .arg("-D")
                .arg(data);
            run(installation.as_user(without_settings(&mut command)));
        })
    }

    fn launch(settings: &[&str], make_data: impl FnOnce(&Path)) -> Self {
        let folder = Folder::new("pg");
        Installation::get().give(folder.path());
        make_data(&data(&folder));
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let process = Mutex::new(launch(&folder, &settings));
        Self { process, settings, folder }
    }

    /// The URL of the database `postgres`.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_for("postgres")
    }

    /// The URL of a database of this server.
    #[must_use]
    pub fn url_for(&self, database: &str) -> String {
        format!("postgres:///{database}?host={}&user={SUPERUSER}", self.folder.path().display())
    }

    /// Creates an empty database and returns its URL.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    #[must_use]
    pub fn create_database(&self) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.psql(&format!("CREATE DATABASE {name}"));
        self.url_for(&name)
    }

    /// The process id of the postmaster. It changes with a restart.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process().pid()
    }

    /// Stops the postmaster and its backends (`SIGSTOP`): connections stay open, nothing is
    /// answered.
    pub fn freeze(&self) {
        self.process().freeze();
    }

    /// Resumes a frozen server (`SIGCONT`).
    pub fn thaw(&self) {
        self.process().thaw();
    }

    /// Ends the server at once and closes its connections (an *immediate* shutdown). Committed rows
    /// are present after [`restart`](Self::restart).
    pub fn stop(&self) {
        stop(&self.process());
    }

    /// Kills the postmaster and its backends (`SIGKILL`).
    pub fn kill(&self) {
        self.process().kill();
    }

    /// Stops the server if it runs, and starts it with the same data and the same URL.
    ///
    /// # Panics
    ///
    /// When it doesn't start.
    pub fn restart(&self) {
        let mut process = self.process();
        stop(&process);
        *process = launch(&self.folder, &self.settings);
    }

    /// Runs SQL in the database `postgres`; returns rows as lines with `|` between the columns.
    ///
    /// # Panics
    ///
    /// When a statement fails, or takes more than 60 s.
    pub fn psql(&self, sql: &str) -> String {
        self.psql_at(&self.url(), sql)
    }

    /// Like [`psql`](Self::psql), in the database of a URL.
    ///
    /// # Panics
    ///
    /// As [`psql`](Self::psql).
    pub fn psql_at(&self, url: &str, sql: &str) -> String {
        let rows = self.try_psql_at(url, sql, ANSWER);
        rows.unwrap_or_else(|message| panic!("psql at {url}: {message}\n{sql}"))
    }

    /// Like [`psql_at`](Self::psql_at), for statements that may fail.
    ///
    /// # Errors
    ///
    /// The message of `psql`, or of the timeout.
    pub fn try_psql_at(&self, url: &str, sql: &str, timeout: Duration) -> Result<String, String> {
        let script = self.folder.path().join(format!("psql-{}.sql", unique()));
        std::fs::write(&script, sql).expect("a file in an own folder");
        let answer = ask(url, &script, timeout);
        let _ = std::fs::remove_file(script);
        answer
    }

    /// The server's log file.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.folder.path().join(LOG)
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        stop(&self.process());
    }
}

fn data(folder: &Folder) -> PathBuf {
    folder.path().join("data")
}

fn launch(folder: &Folder, settings: &[String]) -> Process {
    let log = File::options().create(true).append(true).open(folder.path().join(LOG));
    let log = log.expect("a log file in an own folder");
    let installation = Installation::get();
    let mut command = process::command(&installation.program("postgres"));
    command.arg("-D").arg(data(folder)).arg("-k").arg(folder.path());
    for setting in [
        "listen_addresses=",
        "fsync=off",
        "full_page_writes=off",
        "max_connections=200",
        "shared_buffers=64MB",
        // Its files are removed with the folder.
        "dynamic_shared_memory_type=mmap",
    ] {
        command.args(["-c", setting]);
    }
    for setting in settings {
        command.args(["-c", setting]);
    }
    command
        .current_dir(folder.path())
        .stdout(log.try_clone().expect("a second handle of a log file"))
        .stderr(log);
    let (process, _) =
        Process::spawn(installation.as_user(without_settings(&mut command)), End::QuitFirst);
    let ready = until(START, || process.status().is_some() || accepts_connections(folder.path()));
    assert!(
        ready && process.status().is_none(),
        "PostgreSQL doesn't start:\n{}",
        folder.end_of_log(LOG)
    );
    process
}

/// Whether the server grants a connection; it doesn't while it starts or recovers.
fn accepts_connections(folder: &Path) -> bool {
    let hello = (|| -> std::io::Result<u8> {
        let mut stream = UnixStream::connect(folder.join(".s.PGSQL.5432"))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut message = 196_608_u32.to_be_bytes().to_vec();
        message.extend_from_slice(format!("user\0{SUPERUSER}\0\0").as_bytes());
        let length = u32::try_from(message.len() + 4).unwrap_or_default();
        stream.write_all(&length.to_be_bytes())?;
        stream.write_all(&message)?;
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        stream.write_all(b"X\0\0\0\x04")?;
        Ok(kind[0])
    })();
    // R: authenticated. E: refused.
    matches!(hello, Ok(b'R'))
}

fn stop(process: &Process) {
    if process.status().is_some() {
        return;
    }
    process.thaw();
    process.signal(Signal::SIGQUIT);
    if process.wait(STOP).is_none() {
        process.kill();
    }
}

fn unique() -> u32 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests;
