//! SQL scripts, run by `psql`.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::postgres_template::Installation;
use crate::process::{self, Process};
use crate::watchdog::End;

/// Runs a file of SQL in the database of a URL, for at most `timeout`.
pub(crate) fn ask(url: &str, script: &Path, timeout: Duration) -> Result<String, String> {
    let psql = Installation::get().program("psql");
    let mut command = process::command(&psql);
    command
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f"])
        .arg(script)
        .arg(url)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (process, pipes) = Process::spawn(without_settings(&mut command), End::Kill);
    let stdout = std::thread::spawn(move || read(pipes.stdout));
    let stderr = std::thread::spawn(move || read(pipes.stderr));
    let status = process.wait(timeout);
    drop(process);
    let (stdout, stderr) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
    match status {
        Some(status) if status.success() => Ok(stdout.trim_end_matches('\n').to_owned()),
        Some(status) => Err(format!("{status}: {stderr}")),
        None => Err(format!("no answer within {timeout:?}")),
    }
}

fn read(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // The part before an error is still useful in a message.
        let _ = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Removes the environment variables that PostgreSQL's programs read.
pub(crate) fn without_settings(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command
}
