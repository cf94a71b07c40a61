//! The guard's side of the backplane: events for gate, local cache and slots.

use std::fmt;
use std::sync::Arc;

use super::copy::CopyKind;
use super::local_view::LocalView;
use super::slots::Slots;
use crate::answer::OpenReason;
use crate::error::BackplaneError;
use crate::gate::LiveGate;
use crate::ports::{CopyOffer, CopyRequest, LinkState, PeerEvents, PeerWrite};

/// The guard's side of [`PeerEvents`].
pub(super) struct Receiver<K, V> {
    pub(super) name: Arc<str>,
    pub(super) gate: Arc<LiveGate>,
    pub(super) local: Arc<LocalView<K, V>>,
    pub(super) slots: Arc<Slots>,
    pub(super) copy_kind: Arc<CopyKind>,
}

impl<K, V> fmt::Debug for Receiver<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<K, V> PeerEvents for Receiver<K, V>
where
    K: Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    fn set_link(&self, state: LinkState) {
        self.gate.set_link(state);
    }

    fn void(&self, reason: OpenReason) {
        tracing::warn!(guard = &*self.name, %reason, "the gate is void and will be rebuilt");
        // The gate first: nothing is published locally under a view that was void already.
        self.gate.void();
        self.local.invalidate_all();
    }

    fn begin(&self, write: &PeerWrite) -> Result<(), BackplaneError> {
        self.gate.begin(write).map_err(|full| {
            BackplaneError(format!("{} writes are open here, the limit", full.limit))
        })?;
        self.local.invalidate(&write.key);
        Ok(())
    }

    fn end(&self, write: &PeerWrite) {
        self.local.invalidate(&write.key);
        self.gate.open_writes().leave(&write.key, write.write);
    }

    fn open_writes(&self) -> Vec<PeerWrite> {
        self.gate.open_writes().list()
    }

    fn invalidate_all(&self) {
        self.local.invalidate_all();
    }

    fn offer_copy(&self, request: &CopyRequest) -> CopyOffer {
        self.copy_kind.offer(&self.gate, request)
    }

    fn set_epoch(&self, epoch: &str) {
        self.slots.set_epoch(epoch);
        self.local.invalidate_all();
    }
}
