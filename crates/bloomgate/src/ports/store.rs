//! The port to the cache that all processes share.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{FleetLog, SlotKey, SlotOp, SlotReply};
use crate::error::StoreError;

/// One step of [`Store::clear_step`].
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClearStep {
    /// Number of entries and leases that this step removed.
    pub removed: u64,
    /// Where the next step goes on; `None` after the last.
    pub next: Option<String>,
}

impl ClearStep {
    /// A step that removed this many, followed by the one from `next`.
    pub fn new(removed: u64, next: Option<String>) -> Self {
        Self { removed, next }
    }
}

/// The cache that all processes share: one slot for each key, with the rules of section B of the
/// protocol.
///
/// An `Arc` of a store is a store, so that several guards can share one:
///
/// ```
/// use bloomgate::Store;
/// use bloomgate::ports::{Slot, SlotKey, SlotOp, SlotReply};
///
/// async fn is_cached(store: &impl Store, slot: &SlotKey) -> Result<bool, bloomgate::StoreError> {
///     let reply = store.call(slot, SlotOp::Get).await?;
///     Ok(matches!(reply, SlotReply::Slot(Slot::Value { .. } | Slot::Null { .. })))
/// }
/// ```
pub trait Store: Send + Sync + fmt::Debug + 'static {
    /// Checks that the server can be used (its version, for instance). Called at the start, and
    /// again after an outage.
    fn prepare(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The server's `host:port`, or the path of its socket, for logs. Holds no password.
    fn endpoint(&self) -> String;

    /// Runs one operation, atomically. An operation that the store doesn't know (a later version
    /// of this crate may add one) fails as [`Rejected`](crate::StoreErrorKind::Rejected).
    ///
    /// A future that is dropped early may or may not have taken effect.
    fn call<'a>(
        &'a self,
        slot: &'a SlotKey,
        op: SlotOp,
    ) -> BoxFuture<'a, Result<SlotReply, StoreError>>;

    /// Runs several operations in this order and returns their replies in the same order. Each is
    /// atomic by itself and may fail by itself; those of other callers may come in between.
    ///
    /// The default makes one [`call`](Self::call) after the other; a store on the network should
    /// need one round trip for all.
    fn call_many<'a>(
        &'a self,
        calls: Vec<(SlotKey, SlotOp)>,
    ) -> BoxFuture<'a, Vec<Result<SlotReply, StoreError>>> {
        Box::pin(async move {
            let mut replies = Vec::with_capacity(calls.len());
            for (slot, op) in calls {
                replies.push(self.call(&slot, op).await);
            }
            replies
        })
    }

    /// Removes some of the entries (values, nulls) and leases under `prefix`, but no write
    /// intents; `from` is the last step's [`next`](ClearStep::next), `None` for the first.
    ///
    /// Every entry and lease that was in a slot of this prefix before the first step is gone after
    /// the last. Later ones may stay or go. A step that failed voids its
    /// predecessors: start over.
    ///
    /// Prefixes are made by [`slot_prefix`](crate::shared_cache::slot_prefix): none of them is the
    /// beginning of another.
    fn clear_step<'a>(
        &'a self,
        prefix: &'a str,
        from: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ClearStep, StoreError>>;

    /// Removes every entry and lease under `prefix`, but no write intents, and returns how many it
    /// removed. Takes time in proportion to all keys of the server.
    fn clear<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let (mut removed, mut from) = (0_u64, None);
            loop {
                let step = self.clear_step(prefix, from.as_deref()).await?;
                removed = removed.saturating_add(step.removed);
                from = step.next;
                if from.is_none() {
                    return Ok(removed);
                }
            }
        })
    }

    /// The log of a namespace's fleet that the same server keeps, if it keeps one.
    fn fleet_log(&self, _namespace: &str) -> Option<Arc<dyn FleetLog>> {
        None
    }
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn prepare(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        (**self).prepare()
    }

    fn endpoint(&self) -> String {
        (**self).endpoint()
    }

    fn call<'a>(
        &'a self,
        slot: &'a SlotKey,
        op: SlotOp,
    ) -> BoxFuture<'a, Result<SlotReply, StoreError>> {
        (**self).call(slot, op)
    }

    fn call_many<'a>(
        &'a self,
        calls: Vec<(SlotKey, SlotOp)>,
    ) -> BoxFuture<'a, Vec<Result<SlotReply, StoreError>>> {
        (**self).call_many(calls)
    }

    fn clear_step<'a>(
        &'a self,
        prefix: &'a str,
        from: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ClearStep, StoreError>> {
        (**self).clear_step(prefix, from)
    }

    fn clear<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<u64, StoreError>> {
        (**self).clear(prefix)
    }

    fn fleet_log(&self, namespace: &str) -> Option<Arc<dyn FleetLog>> {
        (**self).fleet_log(namespace)
    }
}
