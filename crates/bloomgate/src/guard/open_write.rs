//! A write between Begin and End (sections A and B of the protocol).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::{Inner, OnStoreFailure};
use crate::clock::Moment;
use crate::error::{AdmitError, StoreErrorKind};
use crate::key::{Key, KeyBytes};
use crate::ports::{PeerWrite, SlotKey, WriteId};

/// How much longer than the write's window its write intent lives (rule B9).
const INTENT_MARGIN: Duration = Duration::from_secs(1);
/// Between two attempts to confirm an End (rule A5).
const END_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Whether a write may make a new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Admitting,
    Existing,
}

/// A write that has begun. Dropped without [`end`](Self::end), its outcome is unknown, and it stays
/// open until W.
pub(super) struct OpenWrite<K: Key, V: Send + Sync + 'static> {
    inner: Arc<Inner<K, V>>,
    write: PeerWrite,
    /// Where the write intent stands.
    slot: SlotKey,
    open: bool,
    /// It went on although others don't know of it ([`OnStoreFailure::AllowStale`]).
    unannounced: bool,
}

impl<K: Key, V: Send + Sync + 'static> OpenWrite<K, V> {
    /// Begin. `started` is when the write's window began to count.
    pub(super) async fn begin(
        inner: &Arc<Inner<K, V>>,
        key: KeyBytes,
        kind: Kind,
        started: Moment,
    ) -> Result<Self, AdmitError> {
        let deadline = started + inner.settings.write_window;
        let slot = inner.slots.of(&key);
        let write = PeerWrite::new(key, WriteId::fresh(), kind == Kind::Admitting, deadline);
        // Rule A1: open set, then the gate's generations.
        if let Err(full) = inner.gate.begin(&write) {
            inner.counts.writes.refused.add();
            return Err(AdmitError::TooManyOpen { open: full.limit });
        }
        // From here on, dropping this future leaves the write open rather than forgotten.
        let inner = Arc::clone(inner);
        let mut open = Self { inner, write, slot, open: true, unannounced: false };
        // Rule A3, at Begin.
        open.inner.local.invalidate(&open.write.key);
        match open.publish(started).await {
            Ok(()) => Ok(open),
            Err(error) => {
                open.inner.counts.writes.refused.add();
                open.roll_back(&error);
                Err(error)
            }
        }
    }

    /// The part of Begin that others must learn of: the backplane, then the write intent (rule
    /// B10).
    async fn publish(&mut self, started: Moment) -> Result<(), AdmitError> {
        let inner = Arc::clone(&self.inner);
        let by = started + inner.settings.run_for();
        let announced =
            match inner.clock.timeout_at(by, inner.backplane.begin_write(&self.write)).await {
                Ok(Ok(epoch)) => {
                    // Rule C26: the others may use another epoch by now than this instance.
                    if let Some(epoch) = epoch {
                        self.slot = inner.slots.in_epoch(&epoch, &self.write.key);
                    }
                    Ok(())
                }
                Ok(Err(error)) => Err(AdmitError::Backplane(error)),
                Err(_elapsed) => Err(AdmitError::Closed),
            };
        self.or_allow_stale(announced)?;
        if let Some(shared) = &inner.shared {
            let lives = self.write.deadline.since(inner.clock.now()) + INTENT_MARGIN;
            let put = shared.put_intent(&self.slot, self.write.write, lives).await;
            self.or_allow_stale(put.map_err(AdmitError::Store))?;
        }
        Ok(())
    }

    /// Under [`OnStoreFailure::AllowStale`] a write that can't be made known goes on: counted, and
    /// the key isn't read from the shared cache until what it holds must have expired.
    fn or_allow_stale(&mut self, published: Result<(), AdmitError>) -> Result<(), AdmitError> {
        let inner = &*self.inner;
        match published {
            Err(error) if inner.settings.on_store_failure == OnStoreFailure::AllowStale => {
                if !self.unannounced {
                    tracing::warn!(guard = &*inner.name, %error, "a write goes on outside the guarantee");
                    inner.counts.writes.without_intent.add();
                }
                self.bypass_shared_cache();
                self.unannounced = true;
                Ok(())
            }
            published => published,
        }
    }

    /// The key isn't read from the shared cache until whatever stands there must have expired.
    fn bypass_shared_cache(&self) {
        let inner = &*self.inner;
        let longest = inner.settings.value_ttl.max(inner.settings.null_ttl);
        let until = inner.clock.now() + longest + inner.settings.lease_ttl;
        inner.bypass.add(self.write.key.clone(), until);
    }

    /// Begin failed, so the caller's part never started and nothing is under way. Only a write
    /// intent whose answer was lost may stand at the server; it is removed in the background, where the others learn that the write
    /// is over.
    fn roll_back(mut self, error: &AdmitError) {
        self.open = false;
        self.close();
        let intent_may_stand =
            matches!(error, AdmitError::Store(error) if error.kind() == StoreErrorKind::TimedOut);
        let Some((runtime, rest)) = self.detach() else { return };
        runtime.spawn(async move {
            if intent_may_stand && let Some(shared) = &rest.inner.shared {
                // One that can't be removed expires.
                let _ = shared.clear_intent(&rest.slot, rest.write.write).await;
            }
            // To the others the write lapses by itself, if they don't learn of this.
            let _ = rest.end_at_peers().await;
        });
    }

    /// When the write's window is over.
    pub(super) fn deadline(&self) -> Moment {
        self.write.deadline
    }

    /// End. Rule A5: first the shared cache, then the local one, then the log. What isn't confirmed
    /// in time goes on in the background, and the caller is answered.
    pub(super) async fn end(mut self) {
        self.inner.counts.writes.ended.add();
        if self.unannounced {
            // Rule B14: it doesn't stay open, or an outage would use up the open writes.
            self.open = false;
            self.close();
            if let Some((runtime, rest)) = self.detach() {
                runtime.spawn(async move {
                    // What did get through lapses by itself otherwise.
                    let _ = rest.clear_intent().await;
                    let _ = rest.end_at_peers().await;
                });
            }
            return;
        }
        if !self.clear_intent().await {
            // What stands at the server is unknown. The outcome of the write isn't, so its caller
            // needn't wait; the key stays open here until the End is confirmed.
            return self.end_in_background();
        }
        self.open = false;
        self.close();
        if !self.end_at_peers().await {
            self.end_in_background();
        }
    }

    /// True once the shared cache has confirmed that the write intent is gone.
    async fn clear_intent(&self) -> bool {
        let Some(shared) = &self.inner.shared else { return true };
        let now = self.inner.slots.of(&self.write.key);
        if now == self.slot {
            return shared.clear_intent(&now, self.write.write).await.is_ok();
        }
        // A change of the epoch put another slot in the place of this one, here or for the others.
        // If the log in which the write began is gone, nobody has a lease to read this one any more,
        // or the End waits for it.
        let cleared = shared.clear_intent(&self.slot, self.write.write).await.is_ok();
        let lost = self.inner.backplane.begin_is_lost(&self.write);
        shared.clear_intent(&now, self.write.write).await.is_ok() && (cleared || lost)
    }

    /// True once the backplane has confirmed the End.
    async fn end_at_peers(&self) -> bool {
        let inner = &*self.inner;
        let mut ended = pin!(inner.backplane.end_write(&self.write));
        // The log's budget is the shared cache's: it is the same server.
        let budget = inner.settings.store_timeout;
        match inner.clock.timeout(budget, &mut ended).await {
            Ok(result) => result.is_ok(),
            // Rule C26: the members that there are now may not know of this write, so that its
            // caller is not answered before they do.
            Err(_elapsed) if inner.backplane.begin_is_lost(&self.write) => {
                matches!(inner.clock.timeout_at(self.write.deadline, ended).await, Ok(Ok(())))
            }
            Err(_elapsed) => false,
        }
    }

    /// Rule A5: an End that isn't confirmed is repeated until it is, or W has passed. Meanwhile the
    /// key stays open here; after W the key isn't read from the shared cache until anything there
    /// must have expired.
    fn end_in_background(&mut self) {
        let was_open = std::mem::replace(&mut self.open, false);
        if was_open {
            // At once: the entry lapses by the clock, and the task may die with its runtime.
            self.bypass_shared_cache();
        }
        let Some((runtime, rest)) = self.detach() else { return };
        runtime.spawn(async move {
            let clock = &rest.inner.clock;
            let mut open = was_open;
            while clock.now() < rest.write.deadline {
                let next = clock.now() + END_AGAIN_AFTER;
                clock.sleep_until(next.min(rest.write.deadline)).await;
                if open && rest.clear_intent().await {
                    rest.inner.bypass.remove(&rest.write.key);
                    open = false;
                    rest.close();
                }
                if !open && rest.end_at_peers().await {
                    return;
                }
            }
            rest.close();
        });
    }

    /// Unknown outcome (rule A6): the entry, the bypass and the write intent end at W.
    pub(super) fn leave_open(mut self) {
        self.expire_at_deadline();
    }

    /// Leaves the key open until its deadline, then does what End would have done.
    fn expire_at_deadline(&mut self) {
        self.open = false;
        self.inner.counts.writes.unknown.add();
        let Some((runtime, rest)) = self.detach() else { return };
        runtime.spawn(async move {
            rest.inner.clock.sleep_until(rest.write.deadline).await;
            // The write intent expires a moment later by itself.
            let _ = rest.clear_intent().await;
            rest.close();
            let _ = rest.end_at_peers().await;
        });
    }

    /// The runtime, and a copy of the write that does nothing when it is dropped; `None` outside a
    /// runtime, where only the clock ends the entry.
    fn detach(&self) -> Option<(tokio::runtime::Handle, Self)> {
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let (inner, write, slot) = (Arc::clone(&self.inner), self.write.clone(), self.slot.clone());
        Some((runtime, Self { inner, write, slot, open: false, unannounced: self.unannounced }))
    }

    /// The local part of End: rule A3, at End, then the entry leaves the open set.
    fn close(&self) {
        self.inner.local.invalidate(&self.write.key);
        self.inner.gate.open_writes().leave(&self.write.key, self.write.write);
    }
}

impl<K: Key, V: Send + Sync + 'static> Drop for OpenWrite<K, V> {
    fn drop(&mut self) {
        if self.open {
            self.expire_at_deadline();
        }
    }
}
