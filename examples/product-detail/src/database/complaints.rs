//! Says what is wrong with the database, a few times a minute at most.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An outage fails every request; the log needs one line in this long.
const SILENCE: Duration = Duration::from_secs(5);

/// Logs `error` with what is below it, unless something was logged a moment ago.
pub(super) fn say(what: &str, error: &(dyn Error + 'static)) {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.is_some_and(|last| last.elapsed() < SILENCE) {
        return;
    }
    *last = Some(Instant::now());
    drop(last);
    tracing::warn!(error, "{what}");
}
