//! Ends what outlives its test process.
//!
//! One shell per test process reads a pipe of which only the test process holds the other end
//! (it is closed on `exec`, so no server inherits it). Each line tells of a process or a folder
//! that begins or ceases to need watching. When the pipe closes, however the test process went,
//! the shell ends the processes that are left and removes the folders.
//!
//! The shell has a process group of its own and ignores the signals of a terminal, so that Ctrl-C
//! or a runner that kills the test's group doesn't take the watchdog away first.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use nix::unistd::Pid;

/// How the names of all watched folders begin. The watchdog removes no others.
pub(crate) const FOLDER_PREFIX: &str = "bloomgate-";

/// How a process is ended when its test process is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// `SIGKILL` to it and to all its descendants.
    Kill,
    /// `SIGQUIT`, and `SIGKILL` after three seconds: PostgreSQL frees its shared memory so.
    QuitFirst,
}

/// The program of the shell. Processes are kept as `PID:END`, folders as paths.
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
    tell(&format!("process {}\n", entry(pid, end)))
        .expect("the watchdog of this test process died");
}

pub(crate) fn forget_process(pid: Pid, end: End) {
    // Without a watchdog there is nothing to forget, and this runs in destructors.
    let _ = tell(&format!("no-process {}\n", entry(pid, end)));
}

pub(crate) fn watch_folder(path: &Path) {
    tell(&format!("folder {}\n", path.display())).expect("the watchdog of this test process died");
}

pub(crate) fn forget_folder(path: &Path) {
    let _ = tell(&format!("no-folder {}\n", path.display()));
}

fn entry(pid: Pid, end: End) -> String {
    match end {
        End::Kill => format!("{pid}:kill"),
        End::QuitFirst => format!("{pid}:quit"),
    }
}

fn tell(line: &str) -> std::io::Result<()> {
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
    use crate::{PostgresServer, Program, RedisServer};

    const OWNER: &str = "TESTBED_OWNER";
    const LONG: Duration = Duration::from_secs(20);

    /// Not a test: the next one runs it in a process of its own.
    #[test]
    #[ignore = "a helper of servers_of_a_killed_test_process_are_ended"]
    fn owner() {
        if std::env::var_os(OWNER).is_none() {
            return;
        }
        let frozen = PostgresServer::start();
        frozen.freeze();
        let redis = RedisServer::start();
        let child = Program::start("sh", &["-c", "sleep 600 & echo $!; wait"], &[]);
        let grandchild = child.wait_for_line("", LONG).unwrap();
        let folders = [frozen.url(), PostgresServer::shared().url(), redis.unix_url()];
        let pids = [frozen.pid(), PostgresServer::shared().pid(), redis.pid(), child.pid()];
        println!(
            "\nowns {} {} | {}",
            pids.map(|pid| pid.to_string()).join(" "),
            grandchild,
            folders.join(" ")
        );
        std::thread::sleep(Duration::from_secs(600));
    }

    #[test]
    fn servers_of_a_killed_test_process_are_ended() {
        let test = std::env::current_exe().unwrap();
        let args = ["--ignored", "--exact", "--nocapture", "watchdog::tests::owner"];
        let owner = Program::start(test, &args, &[(OWNER, "1")]);
        let owns = owner.wait_for_line("owns ", LONG);
        let owns = owns.unwrap_or_else(|| panic!("{}{}", owner.stdout(), owner.stderr()));
        let (pids, urls) = owns["owns ".len()..].split_once(" | ").unwrap();
        let pids: Vec<u32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
        let folders: Vec<String> = urls
            .split(' ')
            .map(|url| {
                let name = url.split_once("/tmp/").unwrap().1;
                format!("/tmp/{}", &name[..name.find(['/', '&']).unwrap()])
            })
            .collect();
        assert_eq!((pids.len(), folders.len()), (5, 3));
        assert!(pids.iter().all(|&pid| !has_ended(pid)), "{pids:?}");
        assert!(folders.iter().all(|folder| std::fs::exists(folder).unwrap()), "{folders:?}");

        // Only the process itself: `kill9` would kill its servers first.
        owner.signal(crate::Signal::SIGKILL);
        assert!(owner.wait(LONG).is_some());
        for pid in pids {
            assert!(until(LONG, || has_ended(pid)), "process {pid} lives on");
        }
        for folder in folders {
            assert!(until(LONG, || !std::fs::exists(&folder).unwrap()), "{folder} is still there");
        }
    }
}
