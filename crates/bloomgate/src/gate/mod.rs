//! May we say *absent* right now?
//!
//! The gate answers [`Verdict::Absent`] only under a certificate: a generation whose warm-up ended
//! with an explicit success is in service, every id admitted since is in it, and the backplane's
//! standing has been [`LinkState::InSync`] without a break since the generation was begun. In any
//! doubt the verdict is [`Verdict::Unknown`].

mod config;
mod generation;
mod open_writes;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use bloomgate_filter::{Key, Secret};
use parking_lot::Mutex;

use crate::answer::{OpenReason, Verdict};
use crate::error::Error;
use crate::key::KeyBytes;
use crate::ports::{LinkState, WriteId};

pub use config::Gate;
pub(crate) use config::{Capacity, FilterSettings, GateSettings};
pub(crate) use generation::{Generation, GenerationSpec};
pub(crate) use open_writes::{LimitReached, OpenWrites};

/// What a reader sees: one consistent picture, replaced as a whole.
#[derive(Debug, Default)]
struct View {
    /// `None` while the certificate is valid.
    open_reason: Option<OpenReason>,
    serving: Option<Arc<Generation>>,
    building: Option<Arc<Generation>>,
}

/// What the view's doubt is worked out from.
#[derive(Debug)]
struct CertificateState {
    forced_open: bool,
    standing: LinkState,
    /// Counts the moments at which the standing was lost. A generation is only as good as the
    /// unbroken standing it was built under.
    link_epoch: u64,
    /// True while the serving generation is complete and the standing unbroken since its start.
    certified: bool,
    /// True once any generation has been complete.
    was_complete: bool,
}

impl CertificateState {
    fn open_reason(&self) -> Option<OpenReason> {
        match self.standing {
            _ if self.forced_open => Some(OpenReason::Forced),
            // A warm-up that is still to come says more than a link that is still to come up.
            LinkState::OutOfSync(OpenReason::Joining) if !self.was_complete => {
                Some(OpenReason::Warming)
            }
            LinkState::OutOfSync(why) => Some(why),
            LinkState::InSync if self.certified => None,
            LinkState::InSync if self.was_complete => Some(OpenReason::Rebuilding),
            LinkState::InSync => Some(OpenReason::Warming),
        }
    }
}

/// Whether a key that an open gate passes was ever seen to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// The last complete generation has it, or a false positive of it.
    Maybe,
    /// The last complete generation doesn't have it.
    No,
    /// No generation has been complete.
    Unknown,
}

/// The gate of one guard.
#[derive(Debug)]
pub(crate) struct LiveGate {
    view: ArcSwap<View>,
    state: Mutex<CertificateState>,
    open: OpenWrites,
    secret: Secret,
    generations_begun: AtomicU64,
}

impl LiveGate {
    pub(crate) fn new(secret: Secret, forced_open: bool, open: OpenWrites) -> Self {
        let state = CertificateState {
            forced_open,
            standing: LinkState::OutOfSync(OpenReason::Joining),
            link_epoch: 0,
            certified: false,
            was_complete: false,
        };
        let view = View { open_reason: state.open_reason(), ..View::default() };
        Self {
            view: ArcSwap::from_pointee(view),
            state: Mutex::new(state),
            open,
            secret,
            generations_begun: AtomicU64::new(0),
        }
    }

    /// The refusal path: one load, one hash, one cache line. Allocates nothing, waits for nothing.
    pub(crate) fn check<K: Key>(&self, key: &K) -> Verdict {
        let view = self.view.load();
        match (view.open_reason, &view.serving) {
            (None, Some(serving)) => {
                if key.with_bytes(|bytes| serving.contains(bytes)) {
                    Verdict::Maybe
                } else {
                    Verdict::Absent
                }
            }
            (open_reason, _) => Verdict::Unknown(open_reason.unwrap_or(OpenReason::Warming)),
        }
    }

    /// What is known of a key that an open gate passes.
    pub(crate) fn known(&self, key: &KeyBytes) -> Known {
        if !self.state.lock().was_complete {
            return Known::Unknown;
        }
        match &self.view.load().serving {
            Some(serving) if serving.contains(key.as_slice()) => Known::Maybe,
            Some(_) => Known::No,
            None => Known::Unknown,
        }
    }

    pub(crate) fn open_writes(&self) -> &OpenWrites {
        &self.open
    }

    /// The local part of Begin for a key that may be new.
    ///
    /// Rule A1: the open set first, then the view, then all its generations. A rebuild that
    /// publishes its generation after our look at the view copies the open set after that, and
    /// finds the key there.
    pub(crate) fn begin_admitting(
        &self,
        key: &KeyBytes,
        write: WriteId,
    ) -> Result<(), LimitReached> {
        self.open.enter(key.clone(), write, true)?;
        let view = self.view.load_full();
        for generation in [&view.serving, &view.building].into_iter().flatten() {
            generation.insert(key.as_slice());
        }
        Ok(())
    }

    /// The local part of Begin for a key that must exist already: nothing is admitted.
    pub(crate) fn begin_existing(
        &self,
        key: &KeyBytes,
        write: WriteId,
    ) -> Result<(), LimitReached> {
        self.open.enter(key.clone(), write, false)
    }

    /// Takes the backplane's standing. A loss voids the certificate for good: only a generation
    /// begun after the standing came back can win it again.
    pub(crate) fn set_link_state(&self, standing: LinkState) {
        let mut state = self.state.lock();
        if standing == state.standing {
            return;
        }
        if state.standing == LinkState::InSync {
            state.link_epoch += 1;
            state.certified = false;
        }
        state.standing = standing;
        self.publish(&state, |_| {});
    }

    /// Begins a generation: from here on every Begin admits into it too.
    ///
    /// Rule A2: subscribe to admissions (publish the view), then copy the open set; the caller
    /// scans after that.
    pub(crate) fn start_generation(
        self: &Arc<Self>,
        spec: GenerationSpec,
    ) -> Result<Building, Error> {
        let number = self.generations_begun.fetch_add(1, Ordering::Relaxed) + 1;
        let generation = Arc::new(Generation::new(number, spec, &self.secret)?);
        let link_epoch = {
            let state = self.state.lock();
            self.publish(&state, |view| view.building = Some(Arc::clone(&generation)));
            state.link_epoch
        };
        self.open.for_each_admitted(|key| generation.insert(key.as_slice()));
        Ok(Building { gate: Arc::clone(self), generation, link_epoch })
    }

    /// The status of the gate, for the status document.
    pub(crate) fn snapshot(
        &self,
    ) -> (Option<OpenReason>, Option<Arc<Generation>>, Option<Arc<Generation>>) {
        let view = self.view.load_full();
        (view.open_reason, view.serving.clone(), view.building.clone())
    }

    /// True once any generation has been complete.
    pub(crate) fn was_complete(&self) -> bool {
        self.state.lock().was_complete
    }

    /// How often the standing was lost.
    pub(crate) fn link_epoch(&self) -> u64 {
        self.state.lock().link_epoch
    }

    /// True while a complete generation is in service whose standing was never broken.
    pub(crate) fn is_certified(&self) -> bool {
        self.state.lock().certified
    }

    /// The false-positive rate to expect of the generation in service at its present fill; 0
    /// without one.
    pub(crate) fn present_rate(&self) -> f64 {
        let view = self.view.load();
        view.serving.as_ref().map_or(0.0, |serving| serving.stats().current_false_positive_rate)
    }

    /// Replaces the view; the caller holds the state, so that replacements don't cross.
    fn publish(&self, state: &CertificateState, change: impl FnOnce(&mut View)) {
        let old = self.view.load_full();
        let mut view = View {
            open_reason: state.open_reason(),
            serving: old.serving.clone(),
            building: old.building.clone(),
        };
        change(&mut view);
        self.view.store(Arc::new(view));
    }
}

/// A generation that is being filled. Dropped before [`activate`](Self::activate), it is as if it
/// had never been: an interrupted warm-up never goes live.
#[derive(Debug)]
pub(crate) struct Building {
    gate: Arc<LiveGate>,
    generation: Arc<Generation>,
    link_epoch: u64,
}

impl Building {
    pub(crate) fn generation(&self) -> &Arc<Generation> {
        &self.generation
    }

    /// Puts the generation in service, in one step. The caller has seen the scan's explicit end.
    pub(crate) fn activate(self) -> Result<(), OpenReason> {
        let mut state = self.gate.state.lock();
        if let LinkState::OutOfSync(why) = state.standing {
            return Err(why);
        }
        if state.link_epoch != self.link_epoch {
            return Err(OpenReason::Rebuilding);
        }
        state.certified = true;
        state.was_complete = true;
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
