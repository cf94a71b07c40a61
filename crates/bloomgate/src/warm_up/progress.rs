//! The progress of a warm-up, for the status document and the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::Clock;

/// First wait after a failure; doubles up to [`MAX_BACKOFF`].
const MIN_BACKOFF: Duration = Duration::from_millis(200);
/// Longest wait between two attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// The progress of a warm-up.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The guard's name, for its log lines.
    name: Arc<str>,
    keys: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl Progress {
    pub(crate) fn new(name: Arc<str>) -> Self {
        Self { name, ..Self::default() }
    }

    /// Keys handed over by the current scan; after a resume some count twice.
    pub(crate) fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }

    /// A scan begins.
    pub(super) fn started(&self) {
        self.keys.store(0, Ordering::Relaxed);
    }

    /// The scan handed over more keys.
    pub(super) fn advanced(&self, keys: usize) {
        self.keys.fetch_add(keys as u64, Ordering::Relaxed);
    }

    pub(crate) fn last_error(&self) -> Option<String> {
        self.last_error.lock().clone()
    }

    pub(crate) fn succeeded(&self) {
        *self.last_error.lock() = None;
    }

    pub(crate) fn failed(&self, what: &str, error: &dyn std::error::Error) {
        let mut text = format!("{what}: {error}");
        let mut source = error.source();
        while let Some(below) = source {
            // Many libraries repeat the source in their own message.
            let below_text = below.to_string();
            if !text.contains(&below_text) {
                text.push_str(": ");
                text.push_str(&below_text);
            }
            source = below.source();
        }
        tracing::warn!(guard = &*self.name, "{text}; trying again");
        *self.last_error.lock() = Some(text);
    }
}

/// Growing waits between attempts.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    clock: Clock,
}

impl Backoff {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { next: MIN_BACKOFF, clock }
    }

    pub(crate) async fn wait(&mut self) {
        self.clock.sleep(self.next).await;
        self.next = (self.next * 2).min(MAX_BACKOFF);
    }

    pub(super) fn reset(&mut self) {
        self.next = MIN_BACKOFF;
    }
}
