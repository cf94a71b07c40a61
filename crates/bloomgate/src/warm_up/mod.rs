//! Fill a generation from a source of keys.

mod keys;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod pages;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::{Clock, Moment};
use crate::error::SourceError;
use crate::ports::{Cursor, Quiesced, Scan, ScanCompleted, ScanFrom, Source};

pub use keys::Keys;
#[cfg(feature = "postgres")]
pub use postgres::PgTable;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteTable;

/// First wait after a failure; doubles up to [`MAX_BACKOFF`].
const MIN_BACKOFF: Duration = Duration::from_millis(200);
/// Longest wait between two attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(5);
/// A source that hands over nothing for so long has stalled.
const STALLED_AFTER: Duration = Duration::from_secs(30);

/// How the warm-up is doing, for the status document and `/readyz`.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    keys: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl Progress {
    /// Keys handed over by the present scan, with repetitions after a resume.
    pub(crate) fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
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
        tracing::warn!("{text}; trying again");
        *self.last_error.lock() = Some(text);
    }
}

/// Waits between attempts.
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

    fn reset(&mut self) {
        self.next = MIN_BACKOFF;
    }
}

/// Hands keys on, remembers the last checkpoint and that something moved.
struct Filling<'a> {
    insert: &'a mut (dyn FnMut(&[u8]) + Send),
    from: &'a mut ScanFrom,
    moved: Arc<AtomicU64>,
    progress: &'a Progress,
}

impl Scan for Filling<'_> {
    fn key(&mut self, canonical: &[u8]) {
        (self.insert)(canonical);
        self.moved.fetch_add(1, Ordering::Relaxed);
        self.progress.keys.fetch_add(1, Ordering::Relaxed);
    }

    fn checkpoint(&mut self, cursor: Cursor) {
        *self.from = ScanFrom::After(cursor);
        self.moved.fetch_add(1, Ordering::Relaxed);
    }
}

/// Scans `source` to its explicit end, however often it must resume. Returns only then; dropping
/// it gives the scan up.
pub(crate) async fn fill(
    source: &dyn Source,
    mut insert: impl FnMut(&[u8]) + Send,
    progress: &Progress,
    clock: &Clock,
) -> ScanCompleted {
    let mut from = ScanFrom::Start;
    let mut backoff = Backoff::new(clock.clone());
    progress.keys.store(0, Ordering::Relaxed);
    loop {
        let moved = Arc::new(AtomicU64::new(0));
        let start = from.clone();
        let attempt = {
            let mut filling = Filling {
                insert: &mut insert,
                from: &mut from,
                moved: Arc::clone(&moved),
                progress,
            };
            let scan = source.scan(start, &mut filling);
            unless_stalled(scan, &moved, clock).await
        };
        match attempt {
            Ok(completed) => {
                progress.succeeded();
                return completed;
            }
            Err(error) => {
                progress.failed("warm-up", &error);
                if moved.load(Ordering::Relaxed) > 0 {
                    backoff.reset();
                }
                backoff.wait().await;
            }
        }
    }
}

/// Runs a scan for as long as it moves.
async fn unless_stalled(
    scan: impl Future<Output = Result<ScanCompleted, SourceError>>,
    moved: &AtomicU64,
    clock: &Clock,
) -> Result<ScanCompleted, SourceError> {
    let watchdog = async {
        loop {
            let before = moved.load(Ordering::Relaxed);
            clock.sleep(STALLED_AFTER).await;
            if moved.load(Ordering::Relaxed) == before {
                return;
            }
        }
    };
    tokio::select! {
        biased;
        ended = scan => ended,
        () = watchdog => {
            Err(SourceError::new(format!("the source handed over nothing for {STALLED_AFTER:?}")))
        }
    }
}

/// Rule A8: waits until no write of a killed predecessor can still be under way: when the database
/// says so, and at the latest when the write window has passed since `started`.
pub(crate) async fn quiesce(
    source: &dyn Source,
    started: Moment,
    write_window: Duration,
    progress: &Progress,
    clock: &Clock,
) {
    let asking = async {
        let mut backoff = Backoff::new(clock.clone());
        loop {
            match source.quiesce().await {
                Ok(Quiesced::Drained) => return,
                Ok(Quiesced::Unknown) => return std::future::pending().await,
                Err(error) => {
                    progress.failed("waiting for earlier writes to end", &error);
                    backoff.wait().await;
                }
            }
        }
    };
    // An elapsed window quiesces it as well as an answer does.
    let _ = clock.timeout_at(started + write_window, asking).await;
}
