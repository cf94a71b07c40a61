//! The path of a write: Begin, the caller's `run`, End (sections A and B of the protocol).

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tracing::Instrument as _;

use super::{Inner, OnStoreFailure, Value};
use crate::clock::Moment;
use crate::error::{AdmitError, StoreErrorKind, WriteError, WriteFailure};
use crate::key::{Key, KeyBytes};
use crate::ports::WriteId;

/// How much longer than the write's window its write intent lives (rule B9).
const INTENT_MARGIN: Duration = Duration::from_secs(1);

/// Whether a write may make a new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Admitting,
    Existing,
}

/// Counts a write whose task is running, however that ends.
pub(super) struct Running<K, V>(Arc<Inner<K, V>>);

impl<K, V> Running<K, V> {
    pub(super) fn count(inner: &Arc<Inner<K, V>>) -> Self {
        inner.running_writes.send_modify(|running| *running += 1);
        Self(Arc::clone(inner))
    }
}

impl<K, V> Drop for Running<K, V> {
    fn drop(&mut self) {
        self.0.running_writes.send_modify(|running| *running -= 1);
    }
}

/// Rule A7: runs a write in a task of its own, which a departing caller doesn't end.
pub(super) async fn in_own_task<T, E>(
    write: impl Future<Output = Result<T, WriteError<E>>> + Send + 'static,
) -> Result<T, WriteError<E>>
where
    T: Send + 'static,
    E: Send + 'static,
{
    // A task that ends without a result was lost in a panic, or with its runtime.
    tokio::spawn(write.in_current_span()).await.unwrap_or(Err(WriteError::Panicked))
}

pub(super) async fn write<K, V, T, E, F>(
    inner: &Arc<Inner<K, V>>,
    key: KeyBytes,
    kind: Kind,
    run: F,
) -> Result<T, WriteError<E>>
where
    K: Key,
    V: Value,
    T: Send + 'static,
    E: WriteFailure + Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    let inner = Arc::clone(inner);
    // W counts from before Begin's first step, waits included.
    let started = inner.clock.now();
    in_own_task(async move {
        let _running = Running::count(&inner);
        let begun =
            OpenWrite::begin(&inner, key, kind, started).await.map_err(WriteError::Begin)?;
        let outcome = run_within(&inner, started, run).await;
        finish(vec![begun], is_known(&outcome)).await;
        outcome
    })
    .await
}

/// Runs the caller's part for what is left of its time.
pub(super) async fn run_within<K, V, T, E, F>(
    inner: &Inner<K, V>,
    started: Moment,
    run: F,
) -> Result<T, WriteError<E>>
where
    F: Future<Output = Result<T, E>>,
{
    let after = inner.settings.run_for();
    match inner.clock.timeout_at(started + after, AssertUnwindSafe(run).catch_unwind()).await {
        Ok(Ok(Ok(done))) => Ok(done),
        Ok(Ok(Err(error))) => Err(WriteError::Run(error)),
        Ok(Err(_panic)) => {
            tracing::error!("a write panicked");
            Err(WriteError::Panicked)
        }
        Err(_elapsed) => Err(WriteError::TimedOut { after }),
    }
}

/// True if nothing of the write is still under way at the database.
pub(super) fn is_known<T, E: WriteFailure>(outcome: &Result<T, WriteError<E>>) -> bool {
    match outcome {
        Ok(_) | Err(WriteError::Absent | WriteError::Begin(_)) => true,
        Err(WriteError::Run(error)) => error.outcome_is_known(),
        Err(WriteError::TimedOut { .. } | WriteError::Panicked) => false,
    }
}

/// Ends the writes if their outcome is known, and otherwise leaves them open until W (rule A6).
pub(super) async fn finish<K: Key, V: Value>(begun: Vec<OpenWrite<K, V>>, known: bool) {
    for write in begun {
        if known {
            write.end().await;
        } else {
            write.leave_open();
        }
    }
}

/// A write that has begun. Dropped without [`end`](Self::end), its outcome is unknown, and it stays
/// open until W.
pub(super) struct OpenWrite<K: Key, V: Value> {
    inner: Arc<Inner<K, V>>,
    key: KeyBytes,
    write: WriteId,
    deadline: Moment,
    open: bool,
}

impl<K: Key, V: Value> OpenWrite<K, V> {
    /// Begin. `started` is when the write's window began to count.
    pub(super) async fn begin(
        inner: &Arc<Inner<K, V>>,
        key: KeyBytes,
        kind: Kind,
        started: Moment,
    ) -> Result<Self, AdmitError> {
        let write = WriteId::fresh();
        let deadline = started + inner.settings.write_window;
        // Rule A1: open set, then the gate's generations.
        let entered = match kind {
            Kind::Admitting => inner.gate.begin_admitting(&key, write),
            Kind::Existing => inner.gate.begin_existing(&key, write),
        };
        if let Err(full) = entered {
            inner.counts.writes.refused.add();
            return Err(AdmitError::TooManyOpen { open: full.limit });
        }
        // From here on, dropping this future leaves the write open rather than forgotten.
        let begun = Self { inner: Arc::clone(inner), key, write, deadline, open: true };
        // Rule A3, at Begin.
        inner.local.invalidate(&begun.key);
        match begun.publish(started).await {
            Ok(()) => Ok(begun),
            Err(error) => {
                inner.counts.writes.refused.add();
                begun.roll_back(&error);
                Err(error)
            }
        }
    }

    /// The part of Begin that others must hear of: the backplane, then the write intent (rule B10).
    async fn publish(&self, started: Moment) -> Result<(), AdmitError> {
        let inner = &*self.inner;
        let by = started + inner.settings.run_for();
        let announced =
            inner.clock.timeout_at(by, inner.backplane.begin_write(&self.key, self.write));
        let announced = match announced.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(AdmitError::Backplane(error)),
            Err(_elapsed) => Err(AdmitError::Closed),
        };
        self.or_allow_stale(announced)?;
        if let Some(shared) = &inner.shared {
            let lives = self.deadline.since(inner.clock.now()) + INTENT_MARGIN;
            let with_intent = shared.put_intent(&inner.slot(&self.key), self.write, lives).await;
            self.or_allow_stale(with_intent.map_err(AdmitError::Store))?;
        }
        Ok(())
    }

    /// Under [`OnStoreFailure::AllowStale`] a write that can't be made known goes on: counted, and the
    /// key isn't read from the shared cache until what it holds must have expired.
    fn or_allow_stale(&self, told: Result<(), AdmitError>) -> Result<(), AdmitError> {
        let inner = &*self.inner;
        match told {
            Err(error) if inner.settings.on_store_failure == OnStoreFailure::AllowStale => {
                tracing::warn!(%error, "a write goes on outside the guarantee");
                inner.counts.writes.without_intent.add();
                let longest = inner.settings.value_ttl.max(inner.settings.null_ttl);
                let until = inner.clock.now() + longest + inner.settings.lease_ttl;
                inner.bypass.add(self.key.clone(), until);
                Ok(())
            }
            told => told,
        }
    }

    /// Begin failed, so `run` never started and nothing is under way. Only a write intent whose answer was
    /// lost may stand at the server; it is taken away behind the caller's back.
    fn roll_back(mut self, error: &AdmitError) {
        self.open = false;
        self.close();
        let AdmitError::Store(error) = error else {
            return;
        };
        if error.kind() == StoreErrorKind::TimedOut {
            let (inner, key, write) = (Arc::clone(&self.inner), self.key.clone(), self.write);
            tokio::spawn(async move {
                if let Some(shared) = &inner.shared {
                    // One that can't be taken away runs out.
                    let _ = shared.clear_intent(&inner.slot(&key), write).await;
                }
            });
        }
    }

    /// End. Rule A5: first the shared cache, then the local one, then the log.
    pub(super) async fn end(mut self) {
        let inner = Arc::clone(&self.inner);
        if let Some(shared) = &inner.shared
            && shared.clear_intent(&inner.slot(&self.key), self.write).await.is_err()
        {
            // What stands at the server is unknown. The outcome of the write isn't, so its caller
            // needn't wait; the key stays open here until the write intent must be gone.
            inner.counts.writes.ended.add();
            self.expire_at_deadline();
            return;
        }
        self.open = false;
        self.close();
        inner.counts.writes.ended.add();
        let told = inner.backplane.end_write(&self.key, self.write);
        // The log's budget is the shared cache's: it is the same server.
        if inner.clock.timeout(inner.settings.store_timeout, told).await.is_err() {
            tracing::debug!("the end of a write was not made known in time");
        }
    }

    /// Unknown outcome (rule A6): the entry, the bypass and the write intent end at W.
    pub(super) fn leave_open(mut self) {
        self.inner.counts.writes.unknown.add();
        self.expire_at_deadline();
    }

    /// Leaves the key open until its deadline, then does what End would have done.
    fn expire_at_deadline(&mut self) {
        self.open = false;
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let rest = Self {
            inner: Arc::clone(&self.inner),
            key: self.key.clone(),
            write: self.write,
            deadline: self.deadline,
            // Nothing is left to be done for one that is dropped with its runtime.
            open: false,
        };
        runtime.spawn(async move {
            rest.inner.clock.sleep_until(rest.deadline).await;
            if let Some(shared) = &rest.inner.shared {
                // The write intent runs out a moment later by itself.
                let _ = shared.clear_intent(&rest.inner.slot(&rest.key), rest.write).await;
            }
            rest.close();
            rest.inner.backplane.end_write(&rest.key, rest.write).await;
        });
    }

    /// The local part of End: rule A3, at End, then the bypass goes.
    fn close(&self) {
        self.inner.local.invalidate(&self.key);
        self.inner.gate.open_writes().leave(&self.key, self.write);
    }
}

impl<K: Key, V: Value> Drop for OpenWrite<K, V> {
    fn drop(&mut self) {
        if self.open {
            self.inner.counts.writes.unknown.add();
            self.expire_at_deadline();
        }
    }
}
