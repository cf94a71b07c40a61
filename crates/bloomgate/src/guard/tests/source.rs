//! A source over the fake table that delivers chunks and scripted failures.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::failpoints::{At, Failpoints};
use super::fake_table::FakeTable;
use crate::error::SourceError;
use crate::ports::{Cursor, KeySink, Quiesced, ScanCompleted, ScanFrom, Source};

/// Keys between two checkpoints.
pub(super) const CHUNK: usize = 10;

/// How a scan ends early.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut {
    /// With an error, after this many keys of this attempt.
    Error(usize),
    /// It stops answering, after this many keys.
    Stall(usize),
}

#[derive(Debug)]
struct Script {
    cuts: VecDeque<Cut>,
    quiesced: Quiesced,
    quiesce_errors: usize,
    /// The id after which each scan began.
    scans: Vec<Option<i64>>,
    quiesces: usize,
}

/// The source.
#[derive(Clone, Debug)]
pub(super) struct TestSource {
    table: FakeTable,
    failpoints: Failpoints,
    script: Arc<Mutex<Script>>,
}

impl TestSource {
    pub(super) fn new(table: FakeTable, failpoints: Failpoints) -> Self {
        Self {
            table,
            failpoints,
            script: Arc::new(Mutex::new(Script {
                cuts: VecDeque::new(),
                quiesced: Quiesced::Drained,
                quiesce_errors: 0,
                scans: Vec::new(),
                quiesces: 0,
            })),
        }
    }

    /// The next scan ends like this.
    pub(super) fn cut(&self, cut: Cut) {
        self.script.lock().cuts.push_back(cut);
    }

    pub(super) fn quiesced(&self, quiesced: Quiesced) {
        self.script.lock().quiesced = quiesced;
    }

    /// This many calls of `quiesce` fail.
    pub(super) fn quiesce_errors(&self, many: usize) {
        self.script.lock().quiesce_errors = many;
    }

    /// The id after which each scan so far began.
    pub(super) fn scans(&self) -> Vec<Option<i64>> {
        self.script.lock().scans.clone()
    }

    /// How often `quiesce` was called.
    pub(super) fn quiesces(&self) -> usize {
        self.script.lock().quiesces
    }
}

impl Source for TestSource {
    type Key = i64;

    fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>> {
        Box::pin(async move {
            self.failpoints.pass(At::Counting).await;
            Ok(self.table.ids().len() as u64)
        })
    }

    fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>> {
        Box::pin(async move {
            self.script.lock().quiesces += 1;
            self.failpoints.pass(At::Quiescing).await;
            let mut script = self.script.lock();
            if script.quiesce_errors > 0 {
                script.quiesce_errors -= 1;
                return Err(SourceError::new("the database does not answer"));
            }
            Ok(script.quiesced)
        })
    }

    fn scan<'a>(
        &'a self,
        from: ScanFrom,
        sink: &'a dyn KeySink<i64>,
    ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>> {
        Box::pin(async move {
            let after = match &from {
                ScanFrom::Start => None,
                ScanFrom::After(cursor) => Some(cursor.position()?),
            };
            let cut = {
                let mut script = self.script.lock();
                script.scans.push(after);
                script.cuts.pop_front()
            };
            let mut ids = self.table.ids();
            ids.retain(|id| after.is_none_or(|after| *id > after));
            self.failpoints.pass(At::AfterSnapshot).await;
            let mut handed = 0;
            for chunk in ids.chunks(CHUNK) {
                self.failpoints.pass(At::BeforeChunk).await;
                for id in chunk {
                    match cut {
                        Some(Cut::Error(keys)) if keys == handed => {
                            return Err(SourceError::new("the connection was lost"));
                        }
                        Some(Cut::Stall(keys)) if keys == handed => {
                            return std::future::pending().await;
                        }
                        _ => {}
                    }
                    sink.insert(&[*id]);
                    handed += 1;
                }
                sink.checkpoint(Cursor::new(&chunk[chunk.len() - 1])?);
            }
            match cut {
                // A cut past the last key: everything was handed over but the end.
                Some(Cut::Error(_)) => return Err(SourceError::new("the connection was lost")),
                Some(Cut::Stall(_)) => return std::future::pending().await,
                None => {}
            }
            self.failpoints.pass(At::BeforeEnd).await;
            Ok(ScanCompleted::explicit_end())
        })
    }
}
