//! The path of a write: Begin, the caller's `run`, End (sections A and B of the protocol).

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::FutureExt as _;
use tracing::Instrument as _;

use super::Inner;
use super::open_write::{Kind, OpenWrite};
use crate::clock::Moment;
use crate::error::{AdmitError, WriteError, WriteFailure};
use crate::key::{Key, KeyBytes};

/// Counts a write that is running, however that ends.
pub(super) struct Running<K, V>(Arc<Inner<K, V>>);

impl<K, V> Running<K, V> {
    /// Counts one more, unless the guard takes no new writes (rule A7).
    pub(super) fn count(inner: &Arc<Inner<K, V>>) -> Result<Self, AdmitError> {
        let taken = inner.running_writes.send_if_modified(|writes| {
            writes.running += usize::from(!writes.closed);
            !writes.closed
        });
        if taken {
            Ok(Self(Arc::clone(inner)))
        } else {
            inner.counts.writes.refused.add();
            Err(AdmitError::ShuttingDown)
        }
    }
}

impl<K, V> Drop for Running<K, V> {
    fn drop(&mut self) {
        self.0.running_writes.send_modify(|writes| writes.running -= 1);
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
    V: Send + Sync + 'static,
    T: Send + 'static,
    E: WriteFailure + Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    // W counts from before Begin's first step, waits included.
    let started = inner.clock.now();
    let running = Running::count(inner).map_err(WriteError::Begin)?;
    let inner = Arc::clone(inner);
    in_own_task(async move {
        let _running = running;
        let open = OpenWrite::begin(&inner, key, kind, started).await.map_err(WriteError::Begin)?;
        let outcome = run_within(&inner, started, run).await;
        finish(vec![open], is_known(&outcome)).await;
        outcome
    })
    .await
}

/// Runs the caller's part for what is left of its time, and doesn't poll it past that: a process
/// that wakes from a pause must not commit after its window (rule A6).
pub(super) async fn run_within<K, V, T, E, F>(
    inner: &Inner<K, V>,
    started: Moment,
    run: F,
) -> Result<T, WriteError<E>>
where
    F: Future<Output = Result<T, E>>,
{
    let after = inner.settings.run_for();
    let end = started + after;
    let mut run = pin!(AssertUnwindSafe(run).catch_unwind());
    let in_time = poll_fn(|context| {
        if inner.clock.now() >= end {
            return Poll::Ready(None);
        }
        run.as_mut().poll(context).map(Some)
    });
    match inner.clock.timeout_at(end, in_time).await {
        Ok(Some(Ok(Ok(done)))) => Ok(done),
        Ok(Some(Ok(Err(error)))) => Err(WriteError::Run(error)),
        Ok(Some(Err(_panic))) => {
            tracing::error!(guard = &*inner.name, "a write panicked");
            Err(WriteError::Panicked)
        }
        Ok(None) | Err(_) => Err(WriteError::TimedOut { after }),
    }
}

/// True if nothing of the write is still under way at the database.
pub(super) fn is_known<T, E: WriteFailure>(outcome: &Result<T, WriteError<E>>) -> bool {
    match outcome {
        Ok(_) | Err(WriteError::Absent | WriteError::Begin(_)) => true,
        Err(WriteError::Run(error)) => error.outcome_is_known(),
        Err(WriteError::TimedOut { .. } | WriteError::Panicked | WriteError::ForeignProof) => false,
    }
}

/// Ends the writes if their outcome is known, and otherwise leaves them open until W (rule A6).
pub(super) async fn finish<K: Key, V: Send + Sync + 'static>(
    writes: Vec<OpenWrite<K, V>>,
    known: bool,
) {
    for write in writes {
        if known {
            write.end().await;
        } else {
            write.leave_open();
        }
    }
}
