//! A gate that is copied from another instance: what is admitted meanwhile must be in it, too.

use std::sync::Arc;

use bloomgate_filter::AnySet;
use parking_lot::Mutex;

use super::{Building, Generation, LiveGate};
use crate::key::KeyBytes;

/// Keys that are kept while a copy is under way: far more than are written in the seconds that it
/// takes.
const MAX_RECORDED: usize = 1_000_000;

/// The keys that were admitted since the copy was asked for; `None` once there were too many.
#[derive(Debug)]
pub(super) struct Recording(Mutex<Option<Vec<KeyBytes>>>);

impl Recording {
    pub(super) fn add(&self, key: &KeyBytes) {
        let mut keys = self.0.lock();
        match &mut *keys {
            Some(recorded) if recorded.len() < MAX_RECORDED => recorded.push(key.clone()),
            too_many => *too_many = None,
        }
    }
}

/// A copy that has been begun. Dropped before [`install`](Self::install), it is as if it had never
/// been.
#[derive(Debug)]
pub(crate) struct Copying {
    gate: Arc<LiveGate>,
    recording: Arc<Recording>,
    /// The count of voids when it was begun.
    voids: u64,
}

impl LiveGate {
    /// Begins to record admissions. The caller asks for the copy after that.
    ///
    /// As rule A2: subscribe to admissions, then copy the open set. The copy holds every key whose
    /// Begin had returned when it was made; a Begin that returns later is waited for by this
    /// instance, so that its key is recorded, or was open already.
    pub(crate) fn start_copy(self: &Arc<Self>) -> Copying {
        let recording = Arc::new(Recording(Mutex::new(Some(Vec::new()))));
        let voids = {
            let state = self.state.lock();
            self.publish(&state, |view| view.recording = Some(Arc::clone(&recording)));
            state.voids()
        };
        self.open.for_each_admitted(|key| recording.add(key));
        Copying { gate: Arc::clone(self), recording, voids }
    }

    /// The generation in service, while this instance could refuse by it.
    pub(crate) fn to_copy(&self) -> Option<Arc<Generation>> {
        let view = self.view.load_full();
        let refuses = view.open_reason.is_none() && !view.lease_end.has_passed(&self.clock);
        view.serving.clone().filter(|_| refuses)
    }
}

impl Copying {
    /// Makes the copy a generation that is complete but for its activation; `None` if too many keys
    /// were admitted meanwhile.
    pub(crate) fn install(self, set: AnySet) -> Option<Building> {
        let gate = &self.gate;
        let generation = Arc::new(Generation::new(gate.next_number(), set));
        {
            let state = gate.state.lock();
            gate.publish(&state, |view| view.building = Some(Arc::clone(&generation)));
        }
        // From here on Begin admits into the generation. One that had looked before is in the open
        // set, or over, and then it is recorded: in this order none is missed.
        let building = Building {
            gate: Arc::clone(gate),
            generation: Arc::clone(&generation),
            voids: self.voids,
        };
        gate.open.for_each_admitted(|key| generation.insert(key.as_slice()));
        let recorded = self.recording.0.lock().take()?;
        for key in &recorded {
            generation.insert(key.as_slice());
        }
        Some(building)
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        let state = self.gate.state.lock();
        self.gate.publish(&state, |view| {
            if view.recording.as_ref().is_some_and(|one| Arc::ptr_eq(one, &self.recording)) {
                view.recording = None;
            }
        });
    }
}
