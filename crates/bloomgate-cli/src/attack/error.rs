//! The errors that keep an attack from starting.

use std::io;

/// Each message names the flag to change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// A flag's value can't be used, alone or with the others.
    #[error("{flag}: {problem}")]
    Flag {
        /// The flag as typed.
        flag: &'static str,
        /// What is wrong, with the fix.
        problem: String,
    },
    /// No server listens where the flag points.
    #[error("{flag}: nothing accepts connections at {host}; start the server or correct the URL")]
    Unreachable {
        /// The flag as typed.
        flag: &'static str,
        /// Host, with its port if the URL names one.
        host: String,
        /// The error of the last attempt.
        source: io::Error,
    },
    /// The status document can't be read.
    #[error("--guard-url: can't read the guard's status")]
    GuardStatus(#[source] super::guard::reader::ReadError),
    /// The operating system refused threads or sockets.
    #[error("--threads: can't start the threads that send; ask for fewer")]
    Runtime(#[source] io::Error),
}

impl Error {
    /// An error about one flag.
    pub(crate) fn flag(flag: &'static str, problem: impl Into<String>) -> Self {
        Error::Flag { flag, problem: problem.into() }
    }
}

/// An error with its causes in one line.
pub(crate) fn one_line(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    line
}
