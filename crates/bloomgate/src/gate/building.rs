//! A generation that is being filled.

use std::sync::Arc;

use super::{Generation, LiveGate};
use crate::answer::OpenReason;

/// A generation that is being filled. Dropped before [`activate`](Self::activate), it is as if it
/// had never been: an interrupted warm-up never goes live.
#[derive(Debug)]
pub(crate) struct Building {
    pub(super) gate: Arc<LiveGate>,
    pub(super) generation: Arc<Generation>,
    /// The count of voids when it was begun.
    pub(super) voids: u64,
}

impl Building {
    pub(crate) fn generation(&self) -> &Arc<Generation> {
        &self.generation
    }

    /// Puts the generation in service, in one step. The caller has seen the scan's explicit end.
    pub(crate) fn activate(self) -> Result<(), OpenReason> {
        let mut state = self.gate.state.lock();
        state.certify(self.voids)?;
        self.gate.publish(&state, |view| {
            view.serving = Some(Arc::clone(&self.generation));
            view.building = None;
        });
        Ok(())
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        let state = self.gate.state.lock();
        self.gate.publish(&state, |view| {
            if view.building.as_ref().is_some_and(|b| Arc::ptr_eq(b, &self.generation)) {
                view.building = None;
            }
        });
    }
}
