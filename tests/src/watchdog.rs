//! A supervisor that removes the servers and temp folders of a test process that died.
//!
//! It is one shell per test process. The shell reads a pipe whose other end only the test process
//! holds (it is closed on `exec`, so that no server inherits it). Each line starts or stops the
//! watching of a process or a folder. The pipe closes however the test process ends, also by
//! `SIGKILL`; then the shell ends the remaining processes and removes the remaining folders.
//!
//! The shell has its own process group and ignores the signals of a terminal, so that it survives
//! Ctrl-C and a test runner that kills the test's process group.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use nix::unistd::Pid;

/// The prefix of the names of all watched folders. The watchdog removes no other folder.
pub(crate) const FOLDER_PREFIX: &str = "bloomgate-";

/// How the watchdog ends a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// `SIGKILL` to it and to all its descendants.
    Kill,
    /// `SIGQUIT`, then `SIGKILL` after three seconds: PostgreSQL frees its shared memory on
    /// `SIGQUIT`.
    QuitFirst,
}

/// The shell's program. It keeps processes as `PID:END` and folders as paths.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
processes=' ' folders=' '
without() { case $1 in *" $2 "*) printf %s "${1%%" $2 "*} ${1#*" $2 "}" ;; *) printf %s "$1" ;; esac; }
tree() { printf '%s ' "$1"; for child in $(cat /proc/"$1"/task/*/children); do tree "$child"; done; }
alive() { read -r stat </proc/"$1"/stat && case $stat in *') Z '*) false ;; esac; }

while read -r word what; do
    case $word in
        process) processes="$processes$what " ;;
        folder) folders="$folders$what " ;;
        no-process) processes=$(without "$processes" "$what") ;;
        no-folder) folders=$(without "$folders" "$what") ;;
    esac
done

for process in $processes; do
    pid=${process%:*}
    case $process in
        *:kill) kill -STOP "$pid"; kill -KILL $(tree "$pid") ;;
        *:quit) kill -CONT $(tree "$pid"); kill -QUIT "$pid" ;;
    esac
done
tries=60
for process in $processes; do
    pid=${process%:*}
    while alive "$pid" && [ "$tries" -gt 0 ]; do sleep 0.05; tries=$((tries - 1)); done
    if alive "$pid"; then kill -STOP "$pid"; kill -KILL $(tree "$pid"); fi
done
for folder in $folders; do
    case $folder in /tmp/bloomgate-*) rm -rf "$folder" || { sleep 0.5; rm -rf "$folder"; } ;; esac
done
"#;

static WATCHDOG: OnceLock<Mutex<Child>> = OnceLock::new();

pub(crate) fn watch_process(pid: Pid, end: End) {
    send(&format!("process {}\n", entry(pid, end)))
        .expect("the watchdog of this test process died");
}

pub(crate) fn forget_process(pid: Pid, end: End) {
    // This runs in destructors, which must not panic. Without a watchdog nothing is watched.
    let _ = send(&format!("no-process {}\n", entry(pid, end)));
}

pub(crate) fn watch_folder(path: &Path) {
    send(&format!("folder {}\n", path.display())).expect("the watchdog of this test process died");
}

pub(crate) fn forget_folder(path: &Path) {
    let _ = send(&format!("no-folder {}\n", path.display()));
}

fn entry(pid: Pid, end: End) -> String {
    match end {
        End::Kill => format!("{pid}:kill"),
        End::QuitFirst => format!("{pid}:quit"),
    }
}

fn send(line: &str) -> std::io::Result<()> {
    let mut shell = WATCHDOG.get_or_init(start).lock().unwrap_or_else(PoisonError::into_inner);
    match &mut shell.stdin {
        Some(pipe) => pipe.write_all(line.as_bytes()),
        None => Ok(()),
    }
}

fn start() -> Mutex<Child> {
    let shell = Command::new("/bin/sh")
        .args(["-c", SCRIPT, "testbed-watchdog"])
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("/bin/sh doesn't start: {error}"));
    Mutex::new(shell)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::process::{has_ended, until};
    use crate::{PostgresServer, Program, RedisServer, temp_folder};

    const OWNER: &str = "TESTBED_OWNER";
    const LONG: Duration = Duration::from_secs(60);

    /// A helper process of the test below: starts one of each fixture, then sleeps.
    #[test]
    #[ignore = "a helper of fixtures_of_a_killed_test_process_are_removed"]
    fn fixture_owner() {
        if std::env::var_os(OWNER).is_none() {
            return;
        }
        let frozen = PostgresServer::start();
        frozen.freeze();
        let redis = RedisServer::start();
        let plain = temp_folder();
        // Creates files until it is killed, as a service does in its data folder.
        let script = "sleep 600 & echo $!; while :; do mktemp -p \"$0\" >&2; sleep 0.01; done";
        let path = plain.path().display().to_string();
        let child = Program::start("sh", &["-c", script, &path], &[]);
        let grandchild = child.wait_for_line("", LONG).unwrap();
        let urls = [frozen.url(), PostgresServer::shared().url(), redis.unix_url(), path];
        let pids = [frozen.pid(), PostgresServer::shared().pid(), redis.pid(), child.pid()];
        println!(
            "\nowns {} {} | {}",
            pids.map(|pid| pid.to_string()).join(" "),
            grandchild,
            urls.join(" ")
        );
        std::thread::sleep(Duration::from_secs(600));
    }

    #[test]
    fn fixtures_of_a_killed_test_process_are_removed() {
        let test = std::env::current_exe().unwrap();
        let args = ["--ignored", "--exact", "--nocapture", "watchdog::tests::fixture_owner"];
        let owner = Program::start(test, &args, &[(OWNER, "1")]);
        let owns = owner.wait_for_line("owns ", LONG);
        let owns = owns.unwrap_or_else(|| panic!("{}{}", owner.stdout(), owner.stderr()));
        let (pids, urls) = owns["owns ".len()..].split_once(" | ").unwrap();
        let pids: Vec<u32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
        let folders: Vec<String> = urls
            .split(' ')
            .map(|url| {
                let name = url.split_once("/tmp/").unwrap().1;
                format!("/tmp/{}", name.split(['/', '&']).next().unwrap())
            })
            .collect();
        assert_eq!((pids.len(), folders.len()), (5, 4));
        assert!(pids.iter().all(|&pid| !has_ended(pid)), "{pids:?}");
        assert!(folders.iter().all(|folder| std::fs::exists(folder).unwrap()), "{folders:?}");

        // Only the process itself: `kill9` would kill its servers first.
        owner.signal(crate::Signal::SIGKILL);
        assert!(owner.wait(LONG).is_some());
        for pid in pids {
            assert!(until(LONG, || has_ended(pid)), "process {pid} still runs");
        }
        for folder in folders {
            assert!(until(LONG, || !std::fs::exists(&folder).unwrap()), "{folder} still exists");
        }
    }
}
