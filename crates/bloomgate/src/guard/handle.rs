//! The explicit form of a write, for code whose transaction can't move into a task.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::sync::oneshot;
use tracing::Instrument as _;

use super::open_write::{Kind, OpenWrite};
use super::write::Running;
use super::{Guard, Inner};
use crate::answer::Verdict;
use crate::clock::Moment;
use crate::error::{AdmitError, EndError};
use crate::key::{Key, KeyBytes};

impl<K: Key, V: Send + Sync + 'static> Guard<K, V> {
    /// Begins a write in its explicit form, for code whose transaction can't move into a task: an
    /// insert or an upsert of this key. Between this call and [`WriteHandle::end`], the caller runs
    /// its transaction, within [`WriteHandle::time_left`].
    ///
    /// Two guards that share one transaction begin first, then it runs, then both end:
    ///
    /// ```
    /// # async fn example(
    /// #     orders: bloomgate::Guard<i64, String>, stock: bloomgate::Guard<i64, u64>,
    /// #     transaction: impl Future<Output = Result<(), std::io::Error>>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let order = orders.begin(7).await?;
    /// let item = stock.begin_existing(30).await?;
    /// // An error for which it isn't known whether the transaction committed returns here: the
    /// // handles are dropped, and both keys stay uncached until the write window has passed.
    /// transaction.await?;
    /// order.end().await?;
    /// item.end().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When the key can't be admitted everywhere; nothing must be written then.
    pub async fn begin(&self, key: K) -> Result<WriteHandle<K, V>, AdmitError> {
        begin(&self.0, vec![KeyBytes::of(&key)], Kind::Admitting).await
    }

    /// [`begin`](Self::begin) for several keys that one transaction writes: of all, or of none.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub async fn begin_many(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<WriteHandle<K, V>, AdmitError> {
        let keys = keys.into_iter().map(|key| KeyBytes::of(&key)).collect();
        begin(&self.0, keys, Kind::Admitting).await
    }

    /// [`begin`](Self::begin) for a row that must exist already: an update or a delete. Admits
    /// nothing to the gate.
    ///
    /// # Errors
    /// [`AdmitError::Absent`] when the gate refuses the key; otherwise as [`begin`](Self::begin).
    pub async fn begin_existing(&self, key: K) -> Result<WriteHandle<K, V>, AdmitError> {
        if self.0.check(&key) == Verdict::Absent {
            return Err(AdmitError::Absent);
        }
        begin(&self.0, vec![KeyBytes::of(&key)], Kind::Existing).await
    }
}

/// Begins at a time, in one call for many keys.
const BEGINS_AT_A_TIME: usize = 64;

/// An open write of one key or of several; see [`Guard::begin`](super::Guard::begin).
///
/// [`end`](Self::end) it once the outcome is known, whether the transaction committed or was rolled
/// back. A handle that is dropped stands for a write of unknown outcome: its keys stay uncached
/// until the write window has passed.
#[must_use = "a write that isn't ended stays open until its window has passed"]
pub struct WriteHandle<K: Key, V: Send + Sync + 'static> {
    inner: Arc<Inner<K, V>>,
    writes: Vec<OpenWrite<K, V>>,
    running: Running<K, V>,
    started: Moment,
}

impl<K: Key, V: Send + Sync + 'static> fmt::Debug for WriteHandle<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteHandle").field("keys", &self.writes.len()).finish_non_exhaustive()
    }
}

impl<K: Key, V: Send + Sync + 'static> WriteHandle<K, V> {
    /// How long the transaction may still take: the window less the time that End needs. Zero once
    /// that has passed. Give the database a statement time-out below it.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        (self.started + self.inner.settings.run_for()).since(self.inner.clock.now())
    }

    /// End, in a task of its own: a caller that departs meanwhile doesn't stop it.
    ///
    /// # Errors
    /// When the write window had passed before the call. The keys are invalidated all the same.
    pub async fn end(self) -> Result<(), EndError> {
        let Self { inner, writes, running, .. } = self;
        let now = inner.clock.now();
        let late = writes.iter().map(|write| now.since(write.deadline())).max().unwrap_or_default();
        let ending = async move {
            let _running = running;
            for write in writes {
                write.end().await;
            }
        };
        // A task that is lost went down with its runtime.
        let _ = tokio::spawn(ending.in_current_span()).await;
        if late.is_zero() { Ok(()) } else { Err(EndError::TooLate { late }) }
    }
}

/// Begins a write of each key: of all, or of none.
pub(super) async fn begin<K: Key, V: Send + Sync + 'static>(
    inner: &Arc<Inner<K, V>>,
    keys: Vec<KeyBytes>,
    kind: Kind,
) -> Result<WriteHandle<K, V>, AdmitError> {
    let started = inner.clock.now();
    let running = Running::count(inner)?;
    let inner = Arc::clone(inner);
    let (sender, begun) = oneshot::channel();
    let beginning = async move {
        let begun = begin_all(&inner, keys, kind, started).await;
        let handle = begun.map(|writes| WriteHandle { inner, writes, running, started });
        // The caller went away before anything of the write ran: it is over.
        if let Err(Ok(handle)) = sender.send(handle) {
            let _ = handle.end().await;
        }
    };
    tokio::spawn(beginning.in_current_span());
    // A task that is lost went down with its runtime.
    begun.await.unwrap_or(Err(AdmitError::Closed))
}

async fn begin_all<K: Key, V: Send + Sync + 'static>(
    inner: &Arc<Inner<K, V>>,
    keys: Vec<KeyBytes>,
    kind: Kind,
    started: Moment,
) -> Result<Vec<OpenWrite<K, V>>, AdmitError> {
    let mut begins = stream::iter(keys)
        .map(|key| OpenWrite::begin(inner, key, kind, started))
        .buffered(BEGINS_AT_A_TIME);
    let mut writes = Vec::new();
    let mut failed = None;
    while let Some(begun) = begins.next().await {
        match begun {
            Ok(write) => writes.push(write),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    match failed {
        None => Ok(writes),
        Some(error) => {
            // Nothing ran, so each of them is over.
            for write in writes {
                write.end().await;
            }
            Err(error)
        }
    }
}
