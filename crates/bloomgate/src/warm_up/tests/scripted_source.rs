//! A source with scripted failures, for tests of filling and quiescing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use crate::clock::{Clock, Moment};
use crate::error::SourceError;
use crate::ports::{Cursor, KeySink, Quiesced, ScanCompleted, ScanFrom, Source};

/// The source yields the integers from 0 up to here.
pub(super) const KEYS: u64 = 1_000;
const PAGE: u64 = 100;

/// The outcome of one scan.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// An error after this many keys.
    FailsAfter(u64),
    /// Silence after this many keys.
    StallsAfter(u64),
    /// A cursor of another source as a checkpoint after this many keys, then an error.
    ForeignCheckpointAfter(u64),
    /// An error after all keys.
    FailsAtTheEnd,
    /// The explicit end.
    Completes,
}

/// Hands over its keys in pages, each scan with the next outcome.
#[derive(Debug)]
pub(super) struct ScriptedSource {
    outcomes: Mutex<Vec<Outcome>>,
    /// The answers to `quiesce`, last one first.
    quiesce_answers: Mutex<Vec<Result<Quiesced, ()>>>,
    quiesce_calls: AtomicU64,
    clock: Clock,
    created: Moment,
    /// The first key of each scan, and when it began.
    scans: Mutex<Vec<(u64, Duration)>>,
}

impl ScriptedSource {
    pub(super) fn new(clock: &Clock, outcomes: &[Outcome]) -> Self {
        Self {
            outcomes: Mutex::new(outcomes.iter().rev().copied().collect()),
            quiesce_answers: Mutex::default(),
            quiesce_calls: AtomicU64::new(0),
            created: clock.now(),
            clock: clock.clone(),
            scans: Mutex::default(),
        }
    }

    /// After these answers `quiesce` never ends.
    pub(super) fn with_quiesce_answers(self, answers: &[Result<Quiesced, ()>]) -> Self {
        self.quiesce_answers.lock().extend(answers.iter().rev().copied());
        self
    }

    pub(super) fn quiesce_calls(&self) -> u64 {
        self.quiesce_calls.load(Ordering::Relaxed)
    }

    /// The first key of each scan so far.
    pub(super) fn scan_starts(&self) -> Vec<u64> {
        self.scans.lock().iter().map(|(first, _)| *first).collect()
    }

    /// The milliseconds between the beginnings of the scans so far.
    pub(super) fn waits_between_scans(&self) -> Vec<u128> {
        let scans = self.scans.lock();
        scans.windows(2).map(|pair| (pair[1].1 - pair[0].1).as_millis()).collect()
    }
}

impl Source for ScriptedSource {
    type Key = u64;

    fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>> {
        Box::pin(async { Ok(KEYS) })
    }

    fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>> {
        Box::pin(async {
            self.quiesce_calls.fetch_add(1, Ordering::Relaxed);
            let answer = self.quiesce_answers.lock().pop();
            match answer {
                Some(Ok(quiesced)) => Ok(quiesced),
                Some(Err(())) => Err(SourceError::new("locked")),
                None => std::future::pending().await,
            }
        })
    }

    fn scan<'a>(
        &'a self,
        from: ScanFrom,
        sink: &'a dyn KeySink<u64>,
    ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>> {
        Box::pin(async move {
            let first = match from {
                ScanFrom::Start => 0,
                ScanFrom::After(cursor) => cursor.position()?,
            };
            self.scans.lock().push((first, self.clock.now().since(self.created)));
            let outcome = self.outcomes.lock().pop().unwrap_or(Outcome::Completes);
            for (handed_over, id) in (0..).zip(first..KEYS) {
                match outcome {
                    Outcome::FailsAfter(keys) if handed_over == keys => {
                        return Err(SourceError::new("the server hung up"));
                    }
                    Outcome::StallsAfter(keys) if handed_over == keys => {
                        std::future::pending::<()>().await;
                    }
                    Outcome::ForeignCheckpointAfter(keys) if handed_over == keys => {
                        sink.checkpoint(Cursor::new("a position of another source")?);
                        return Err(SourceError::new("the server hung up"));
                    }
                    _ => {}
                }
                sink.insert(&[id]);
                if (id + 1) % PAGE == 0 {
                    sink.checkpoint(Cursor::new(&(id + 1))?);
                    tokio::task::yield_now().await;
                }
            }
            match outcome {
                Outcome::FailsAtTheEnd => Err(SourceError::new("the server hung up")),
                _ => Ok(ScanCompleted::explicit_end()),
            }
        })
    }
}
