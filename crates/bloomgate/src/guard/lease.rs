//! A lease on a slot of the shared cache, which goes back however it is dropped.

use std::sync::Arc;

use crate::ports::{LeaseId, SlotKey};
use crate::shared_cache::SharedCache;

/// A lease on a slot. However it is dropped, it goes back.
pub(super) struct Lease {
    shared: Arc<SharedCache>,
    pub(super) slot: SlotKey,
    pub(super) id: LeaseId,
    armed: bool,
}

impl Lease {
    pub(super) fn on(shared: &Arc<SharedCache>, slot: SlotKey) -> Self {
        Self { shared: Arc::clone(shared), slot, id: LeaseId::fresh(), armed: true }
    }

    /// It was never taken, or is gone.
    pub(super) fn disarm(mut self) {
        self.armed = false;
    }

    pub(super) async fn release(mut self) {
        // A lease that can't be given back runs out.
        let _ = self.shared.release(&self.slot, self.id).await;
        self.armed = false;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.armed
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (shared, slot, id) = (Arc::clone(&self.shared), self.slot.clone(), self.id);
            runtime.spawn(async move {
                let _ = shared.release(&slot, id).await;
            });
        }
    }
}
