//! The log of database errors, a few lines a minute at most.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two lines: an outage fails every request.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// Logs `error` with its sources, unless a line was logged a moment ago.
pub(super) fn log(what: &str, error: &(dyn Error + 'static)) {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.is_some_and(|last| last.elapsed() < BETWEEN_LINES) {
        return;
    }
    *last = Some(Instant::now());
    drop(last);
    tracing::warn!(error, "{what}");
}

/// An error and its sources, in one line.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(error) = below {
        let more = error.to_string();
        // Many libraries repeat the error below in their own message.
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        below = error.source();
    }
    text.replace('\n', " ")
}
