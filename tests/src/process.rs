//! A child process that can be frozen, measured and ended.

use std::collections::HashSet;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::watchdog::{self, End};

/// The longest wait for the effect of a signal; only a hang lasts this long.
const CEILING: Duration = Duration::from_secs(60);

/// A child that is killed on drop, or by the watchdog when the test process dies.
#[derive(Debug)]
pub(crate) struct Process {
    pid: Pid,
    end: End,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    child: Child,
    status: Option<ExitStatus>,
}

/// A command that starts `program` after [`Process::spawn`] has registered it with the watchdog: a
/// shell waits for a line on its input before, and exits if the test process dies meanwhile.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", r#"read -r go && exec "$0" "$@" </dev/null"#]).arg(program);
    command
}

impl Process {
    /// Starts a command from [`command`] in its own process group.
    pub(crate) fn spawn(command: &mut Command, end: End) -> (Self, Pipes) {
        let mut child = command
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("can't start {command:?}: {error}"));
        let pid = pid_of(&child);
        watchdog::watch_process(pid, end);
        if let Some(mut input) = child.stdin.take() {
            // If this fails, the child has exited, which its status shows.
            let _ = input.write_all(b"go\n");
        }
        let pipes = Pipes { stdout: child.stdout.take(), stderr: child.stderr.take() };
        (Self { pid, end, state: Mutex::new(State { child, status: None }) }, pipes)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    /// Sends a signal, unless the process has ended.
    pub(crate) fn signal(&self, signal: Signal) {
        let mut state = self.state();
        if self.poll(&mut state).is_none() {
            // The lock prevents that the process is reaped, so the pid is still valid.
            kill(self.pid, signal)
                .unwrap_or_else(|error| panic!("{signal} to {}: {error}", self.pid));
        }
    }

    /// The exit status, if the process has ended.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        self.poll(&mut self.state())
    }

    /// Waits until the process ends.
    pub(crate) fn wait(&self, timeout: Duration) -> Option<ExitStatus> {
        let mut status = None;
        until(timeout, || {
            status = self.status();
            status.is_some()
        });
        status
    }

    /// Sends `SIGKILL` to the process and to its descendants, and waits until all have ended.
    pub(crate) fn kill(&self) -> ExitStatus {
        self.try_kill().unwrap_or_else(|| panic!("process {} survives SIGKILL", self.pid))
    }

    fn try_kill(&self) -> Option<ExitStatus> {
        let (tree, _) = self.stop_tree();
        for &pid in tree.iter().filter(|&&pid| pid != self.pid) {
            // A descendant may have exited by itself.
            let _ = kill(pid, Signal::SIGKILL);
        }
        self.signal(Signal::SIGKILL);
        let status = self.wait(CEILING);
        until(CEILING, || {
            tree.iter().all(|&pid| stat(pid).is_none_or(|stat| stat.state == RunState::Ended))
        });
        status
    }

    /// Stops the process and its descendants, and returns once none of them runs.
    pub(crate) fn freeze(&self) {
        let (_, all) = self.stop_tree();
        assert!(all, "process {} and its children don't stop", self.pid);
    }

    /// Stops the process and its descendants; returns their ids and whether all are stopped.
    ///
    /// A parent is stopped before its children are listed, so that it can't fork another one. A
    /// process in an uninterruptible wait counts as stopped once it has its signal: it stops when
    /// it leaves the kernel, and waits there while a `vfork` child of it is stopped.
    fn stop_tree(&self) -> (HashSet<Pid>, bool) {
        self.signal(Signal::SIGSTOP);
        let mut tree = HashSet::from([self.pid]);
        let stopped = until(CEILING, || {
            if self.status().is_some() {
                return true;
            }
            let mut all = stat(self.pid).is_none_or(|stat| stat.state != RunState::Active);
            for pid in self.descendants() {
                let Some(stat) = stat(pid) else { continue };
                let is_new = tree.insert(pid);
                if is_new {
                    let _ = kill(pid, Signal::SIGSTOP);
                }
                all &= !is_new && stat.state != RunState::Active;
            }
            all
        });
        (tree, stopped)
    }

    /// Lets the process and its descendants run again, children first.
    pub(crate) fn thaw(&self) {
        for pid in self.descendants().into_iter().rev() {
            let _ = kill(pid, Signal::SIGCONT);
        }
        self.signal(Signal::SIGCONT);
        until(CEILING, || stat(self.pid).is_none_or(|stat| stat.state != RunState::Stopped));
    }

    /// User and system time so far, in clock ticks.
    pub(crate) fn cpu_ticks(&self) -> (u64, u64) {
        stat(self.pid).map_or((0, 0), |stat| (stat.user, stat.system))
    }

    fn descendants(&self) -> Vec<Pid> {
        let mut found = Vec::new();
        if self.status().is_none() {
            add_children(self.pid, &mut found);
        }
        found
    }

    fn poll(&self, state: &mut State) -> Option<ExitStatus> {
        if state.status.is_none() {
            state.status = match state.child.try_wait() {
                Ok(status) => status,
                // It was reaped elsewhere: it has ended with an unknown status.
                Err(_) => Some(ExitStatus::from_raw(-1)),
            };
            if state.status.is_some() {
                watchdog::forget_process(self.pid, self.end);
            }
        }
        state.status
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.status().is_none() {
            self.try_kill();
        }
    }
}

/// The outputs of a process, where the command asked for pipes.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdout: Option<std::process::ChildStdout>,
    pub(crate) stderr: Option<std::process::ChildStderr>,
}

/// Polls `done` at growing intervals; returns whether it was true before the timeout.
pub(crate) fn until(timeout: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + timeout;
    let mut pause = Duration::from_micros(200);
    loop {
        if done() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        sleep(pause.min(end.saturating_duration_since(Instant::now())));
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// Whether a process has ended; a zombie has.
#[cfg(test)]
pub(crate) fn has_ended(pid: u32) -> bool {
    let pid = Pid::from_raw(pid.cast_signed());
    stat(pid).is_none_or(|stat| stat.state == RunState::Ended)
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

fn add_children(parent: Pid, found: &mut Vec<Pid>) {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{parent}/task")) else {
        return;
    };
    for thread in threads.flatten() {
        let list = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for pid in list.split_whitespace().filter_map(|pid| pid.parse().ok()) {
            found.push(Pid::from_raw(pid));
            add_children(Pid::from_raw(pid), found);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunState {
    /// Runs, or waits interruptibly.
    Active,
    /// Waits in the kernel, and no signal wakes it.
    Uninterruptible,
    Stopped,
    Ended,
}

struct Stat {
    state: RunState,
    user: u64,
    system: u64,
}

/// Reads `/proc/PID/stat`; `None` when there is no such process.
fn stat(pid: Pid) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain spaces and parentheses.
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let state = match *fields.first()? {
        "D" => RunState::Uninterruptible,
        "T" | "t" => RunState::Stopped,
        "Z" | "X" | "x" => RunState::Ended,
        _ => RunState::Active,
    };
    Some(Stat { state, user: fields.get(11)?.parse().ok()?, system: fields.get(12)?.parse().ok()? })
}
