//! Scans that are repeated until they reach their explicit end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::{Backoff, Progress};
use crate::clock::{Clock, Moment};
use crate::error::SourceError;
use crate::key::Key;
use crate::ports::{Cursor, KeySink, Quiesced, ScanCompleted, ScanFrom, Source};

/// A source that hands over nothing for this long has stalled.
const STALLED_AFTER: Duration = Duration::from_secs(30);

/// The sink of one filling: inserts keys, keeps the last checkpoint, counts what arrives.
struct FillSink<'a, F> {
    insert: F,
    resume_from: Mutex<ScanFrom>,
    /// Calls so far, to tell a scan that moves from one that has stalled.
    calls: AtomicU64,
    progress: &'a Progress,
}

impl<K, F: Fn(&[K]) + Send + Sync> KeySink<K> for FillSink<'_, F> {
    fn insert(&self, keys: &[K]) {
        (self.insert)(keys);
        self.progress.advanced(keys.len());
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    fn checkpoint(&self, cursor: Cursor) {
        *self.resume_from.lock() = ScanFrom::After(cursor);
        self.calls.fetch_add(1, Ordering::Relaxed);
    }
}

/// Scans `source` to its explicit end, resuming from the last checkpoint as often as it takes.
/// Returns only then; dropping it abandons the scan.
pub(crate) async fn fill<K: Key>(
    source: &dyn Source<Key = K>,
    insert: impl Fn(&[K]) + Send + Sync,
    progress: &Progress,
    clock: &Clock,
) -> ScanCompleted {
    let resume_from = Mutex::new(ScanFrom::Start);
    let sink = FillSink { insert, resume_from, calls: AtomicU64::new(0), progress };
    let mut backoff = Backoff::new(clock.clone());
    progress.started();
    loop {
        let from = sink.resume_from.lock().clone();
        let before = sink.calls.load(Ordering::Relaxed);
        let scan = source.scan(from, &sink);
        match unless_stalled(scan, &sink.calls, clock).await {
            Ok(completed) => {
                progress.succeeded();
                return completed;
            }
            Err(error) => {
                progress.failed("warm-up", &error);
                if error.is_cursor_mismatch() {
                    *sink.resume_from.lock() = ScanFrom::Start;
                }
                if sink.calls.load(Ordering::Relaxed) > before {
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
    calls: &AtomicU64,
    clock: &Clock,
) -> Result<ScanCompleted, SourceError> {
    let watchdog = async {
        loop {
            let before = calls.load(Ordering::Relaxed);
            clock.sleep(STALLED_AFTER).await;
            if calls.load(Ordering::Relaxed) == before {
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

/// Rule A8: waits until no write of a killed predecessor can still be under way: until the
/// database says so, at most until the write window has passed since `started`.
pub(crate) async fn quiesce<K: Key>(
    source: &dyn Source<Key = K>,
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
    // The end of the window is as good as an answer.
    let _ = clock.timeout_at(started + write_window, asking).await;
}
