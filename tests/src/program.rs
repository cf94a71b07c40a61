//! A running program with access to its output, signals and resources.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::{SysconfVar, sysconf};

use crate::process::{self, Process};
use crate::watchdog::End;

/// The wait of [`Program::terminate`] before it kills the program.
const TERMINATE_WITHIN: Duration = Duration::from_secs(60);

/// A running program and its output so far. Dropping it kills the program and its children.
///
/// Its input is empty, and it has its own process group.
#[derive(Debug)]
pub struct Program {
    process: Process,
    path: PathBuf,
    stdout: Arc<Lines>,
    stderr: Arc<Lines>,
}

impl Program {
    /// Starts `path` in this process's working folder, with this process's environment and `envs`.
    ///
    /// # Panics
    ///
    /// When there is no such file. A file that can't be executed ends with status 126.
    #[must_use]
    pub fn start(path: impl AsRef<Path>, args: &[&str], envs: &[(&str, &str)]) -> Self {
        Self::start_in(".", path, args, envs)
    }

    /// Like [`start`](Self::start), in the working folder `folder`.
    ///
    /// # Panics
    ///
    /// When there is no such file or folder.
    #[must_use]
    pub fn start_in(
        folder: impl AsRef<Path>,
        path: impl AsRef<Path>,
        args: &[&str],
        envs: &[(&str, &str)],
    ) -> Self {
        let path = path.as_ref();
        let is_name = path.components().count() == 1;
        assert!(is_name || path.is_file(), "there is no program {}", path.display());
        let (process, pipes) = Process::spawn(
            process::command(path)
                .args(args)
                .envs(envs.iter().copied())
                .current_dir(folder)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped()),
            End::Kill,
        );
        Self {
            process,
            path: path.to_path_buf(),
            stdout: Lines::read(pipes.stdout),
            stderr: Lines::read(pipes.stderr),
        }
    }

    /// Waits for a line of standard output that begins with `prefix`, and returns that line.
    ///
    /// Lines printed before the call are searched too. `None` after the timeout, or when the output
    /// has ended.
    #[must_use]
    pub fn wait_for_line(&self, prefix: &str, timeout: Duration) -> Option<String> {
        self.stdout.wait_for(timeout, |line| line.starts_with(prefix))
    }

    /// Waits for a line of standard error that contains `part`, and returns that line.
    #[must_use]
    pub fn wait_for_error_line(&self, part: &str, timeout: Duration) -> Option<String> {
        self.stderr.wait_for(timeout, |line| line.contains(part))
    }

    /// Standard output so far, in whole lines; all of it once the program has ended.
    #[must_use]
    pub fn stdout(&self) -> String {
        self.stdout.text(self.status().is_some())
    }

    /// Standard error so far, in whole lines; all of it once the program has ended.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.stderr.text(self.status().is_some())
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Sends a signal, unless the program has ended.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Sends `SIGTERM` and waits until the program ends. After 60 s it is killed, and the returned
    /// status has signal 9.
    pub fn terminate(&self) -> ExitStatus {
        self.process.signal(Signal::SIGTERM);
        self.process.wait(TERMINATE_WITHIN).unwrap_or_else(|| self.process.kill())
    }

    /// Sends `SIGKILL` and waits until the program has ended.
    pub fn kill9(&self) -> ExitStatus {
        self.process.kill()
    }

    /// The exit status, if the program has ended.
    #[must_use]
    pub fn status(&self) -> Option<ExitStatus> {
        self.process.status()
    }

    /// Waits until the program ends; `None` when it still runs after `timeout`.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> Option<ExitStatus> {
        self.process.wait(timeout)
    }

    /// User and system time so far, in seconds, at a resolution of about 10 ms. Zero after its end.
    #[must_use]
    pub fn cpu_time(&self) -> (f64, f64) {
        let ticks = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100) as f64;
        let (user, system) = self.process.cpu_ticks();
        (user as f64 / ticks, system as f64 / ticks)
    }

    /// The memory it occupies now, in bytes. Zero after its end.
    #[must_use]
    pub fn rss_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        kilobytes.map_or(0, |kilobytes: u64| kilobytes * 1024)
    }

    /// Stops the program and its children (`SIGSTOP`), and returns once none of them runs.
    pub fn freeze(&self) {
        self.process.freeze();
    }

    /// Lets a frozen program go on (`SIGCONT`).
    pub fn thaw(&self) {
        self.process.thaw();
    }

    /// The path it was started from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The lines of one output stream.
#[derive(Debug, Default)]
struct Lines {
    state: Mutex<LinesState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct LinesState {
    lines: VecDeque<String>,
    ended: bool,
}

impl Lines {
    fn read(pipe: Option<impl Read + Send + 'static>) -> Arc<Self> {
        let lines = Arc::new(Self::default());
        let writer = Arc::clone(&lines);
        thread::spawn(move || {
            if let Some(pipe) = pipe {
                writer.follow(BufReader::new(pipe));
            }
            writer.state().ended = true;
            writer.changed.notify_all();
        });
        lines
    }

    fn follow(&self, mut pipe: impl BufRead) {
        let mut line = Vec::new();
        while matches!(pipe.read_until(b'\n', &mut line), Ok(length) if length > 0) {
            let text = String::from_utf8_lossy(&line);
            self.state().lines.push_back(text.trim_end_matches(['\r', '\n']).to_owned());
            self.changed.notify_all();
            line.clear();
        }
    }

    fn wait_for(&self, timeout: Duration, fits: impl Fn(&str) -> bool) -> Option<String> {
        let end = Instant::now() + timeout;
        let mut state = self.state();
        let mut seen = 0;
        loop {
            if let Some(line) = state.lines.iter().skip(seen).find(|line| fits(line)) {
                return Some(line.clone());
            }
            seen = state.lines.len();
            let left = end.saturating_duration_since(Instant::now());
            if state.ended || left.is_zero() {
                return None;
            }
            state =
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The text so far. After the end of the program, this waits for the lines that are still in
    /// the pipe. A child of the program may keep the pipe open, so that the wait has a limit.
    fn text(&self, program_has_ended: bool) -> String {
        let limit = Duration::from_secs(if program_has_ended { 2 } else { 0 });
        let state = self
            .changed
            .wait_timeout_while(self.state(), limit, |state| !state.ended)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        state.lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }

    fn state(&self) -> MutexGuard<'_, LinesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::has_ended;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn output_lines_are_found_when_they_are_printed() {
        let program = Program::start(
            "sh",
            &["-c", "echo one; echo oops >&2; sleep 0.2; echo \"two $WORD\"; printf three"],
            &[("WORD", "words")],
        );
        assert_eq!(program.wait_for_line("two", LONG).as_deref(), Some("two words"));
        assert_eq!(program.wait_for_line("one", LONG).as_deref(), Some("one"));
        assert_eq!(program.wait_for_line("four", LONG), None);
        assert!(program.wait(LONG).is_some_and(|status| status.success()));
        assert_eq!(program.stdout(), "one\ntwo words\nthree\n");
        assert_eq!(program.stderr(), "oops\n");
    }

    #[test]
    fn waiting_for_a_line_has_a_ceiling() {
        let program = Program::start("sleep", &["60"], &[]);
        assert_eq!(program.wait_for_line("never", Duration::from_millis(50)), None);
        assert_eq!(program.wait(Duration::from_millis(50)), None);
    }

    #[test]
    fn the_input_is_empty() {
        let program = Program::start("cat", &[], &[]);
        assert!(program.wait(LONG).is_some_and(|status| status.success()));
        assert_eq!(program.stdout(), "");
    }

    #[test]
    fn a_terminated_program_can_finish() {
        let script = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done";
        let program = Program::start("sh", &["-c", script], &[]);
        program.wait_for_line("ready", LONG).unwrap();
        assert_eq!(program.terminate().code(), Some(3));
        assert_eq!(program.stdout(), "ready\nbye\n");
    }

    #[test]
    fn a_frozen_program_and_its_children_do_not_run() {
        let script = "(while :; do echo tick; sleep 0.01; done) & echo child $!; wait";
        let program = Program::start("sh", &["-c", script], &[]);
        program.wait_for_line("tick", LONG).unwrap();
        let child = program.wait_for_line("child ", LONG).unwrap()[6..].parse().unwrap();
        program.freeze();
        // Lines from before the freeze may still be in the pipe.
        let mut before = program.stdout().len();
        assert!(process::until(LONG, || {
            thread::sleep(Duration::from_millis(200));
            let earlier = std::mem::replace(&mut before, program.stdout().len());
            before == earlier
        }));
        program.thaw();
        assert!(process::until(LONG, || program.stdout().len() > before));
        drop(program);
        assert!(process::until(LONG, || has_ended(child)));
    }

    #[test]
    fn cpu_time_and_memory_are_measured() {
        let program = Program::start("sh", &["-c", "while :; do :; done"], &[]);
        assert!(process::until(LONG, || program.cpu_time().0 + program.cpu_time().1 >= 0.1));
        assert!(program.rss_bytes() > 100_000);
        program.kill9();
        assert_eq!(program.rss_bytes(), 0);
    }

    #[test]
    #[should_panic(expected = "there is no program")]
    fn a_missing_program_fails_the_test() {
        let _ = Program::start("/nowhere/to/be/found", &[], &[]);
    }
}
