//! May we say *absent* right now?
//!
//! The gate answers [`Verdict::Absent`] only under a certificate: a generation whose warm-up ended
//! with an explicit success is in service, every id admitted since is in it, and the backplane's
//! standing has been [`Standing::Current`] without a break since the generation was begun. In any
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

use crate::answer::{Verdict, Why};
use crate::error::Error;
use crate::key::KeyBytes;
use crate::ports::{Standing, Token};

pub use config::Gate;
pub(crate) use config::{Capacity, FilterSettings, GateSettings};
pub(crate) use generation::{Blueprint, Generation};
pub(crate) use open_writes::{LimitReached, OpenWrites};

/// What a reader sees: one consistent picture, replaced as a whole.
#[derive(Debug, Default)]
struct View {
    /// `None` while the certificate is valid.
    doubt: Option<Why>,
    serving: Option<Arc<Generation>>,
    building: Option<Arc<Generation>>,
}

/// What the view's doubt is worked out from.
#[derive(Debug)]
struct Evidence {
    forced_open: bool,
    standing: Standing,
    /// Counts the moments at which the standing was lost. A generation is only as good as the
    /// unbroken standing it was built under.
    breaks: u64,
    /// True while the serving generation is complete and the standing unbroken since its start.
    certified: bool,
    /// True once any generation has been complete.
    was_complete: bool,
}

impl Evidence {
    fn doubt(&self) -> Option<Why> {
        match self.standing {
            _ if self.forced_open => Some(Why::Forced),
            // A warm-up that is still to come says more than a link that is still to come up.
            Standing::Doubtful(Why::Joining) if !self.was_complete => Some(Why::Warming),
            Standing::Doubtful(why) => Some(why),
            Standing::Current if self.certified => None,
            Standing::Current if self.was_complete => Some(Why::Rebuilding),
            Standing::Current => Some(Why::Warming),
        }
    }
}

/// Whether a key that an open gate passes was ever seen to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The last complete generation has it, or a false positive of it.
    Perhaps,
    /// The last complete generation doesn't have it.
    Never,
    /// No generation has been complete.
    CannotTell,
}

/// The gate of one guard.
#[derive(Debug)]
pub(crate) struct LiveGate {
    view: ArcSwap<View>,
    evidence: Mutex<Evidence>,
    open: OpenWrites,
    secret: Secret,
    generations_begun: AtomicU64,
}

impl LiveGate {
    pub(crate) fn new(secret: Secret, forced_open: bool, open: OpenWrites) -> Self {
        let evidence = Evidence {
            forced_open,
            standing: Standing::Doubtful(Why::Joining),
            breaks: 0,
            certified: false,
            was_complete: false,
        };
        let view = View { doubt: evidence.doubt(), ..View::default() };
        Self {
            view: ArcSwap::from_pointee(view),
            evidence: Mutex::new(evidence),
            open,
            secret,
            generations_begun: AtomicU64::new(0),
        }
    }

    /// The refusal path: one load, one hash, one cache line. Allocates nothing, waits for nothing.
    pub(crate) fn check<K: Key>(&self, key: &K) -> Verdict {
        let view = self.view.load();
        match (view.doubt, &view.serving) {
            (None, Some(serving)) => {
                if key.with_bytes(|bytes| serving.contains(bytes)) {
                    Verdict::Maybe
                } else {
                    Verdict::Absent
                }
            }
            (doubt, _) => Verdict::Unknown(doubt.unwrap_or(Why::Warming)),
        }
    }

    /// What is known of a key that an open gate passes.
    pub(crate) fn seen(&self, key: &KeyBytes) -> Seen {
        if !self.evidence.lock().was_complete {
            return Seen::CannotTell;
        }
        match &self.view.load().serving {
            Some(serving) if serving.contains(key.as_slice()) => Seen::Perhaps,
            Some(_) => Seen::Never,
            None => Seen::CannotTell,
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
    pub(crate) fn begin_admitting(&self, key: &KeyBytes, write: Token) -> Result<(), LimitReached> {
        self.open.enter(key.clone(), write, true)?;
        let view = self.view.load_full();
        for generation in [&view.serving, &view.building].into_iter().flatten() {
            generation.insert(key.as_slice());
        }
        Ok(())
    }

    /// The local part of Begin for a key that must exist already: nothing is admitted.
    pub(crate) fn begin_existing(&self, key: &KeyBytes, write: Token) -> Result<(), LimitReached> {
        self.open.enter(key.clone(), write, false)
    }

    /// Takes the backplane's standing. A loss voids the certificate for good: only a generation
    /// begun after the standing came back can win it again.
    pub(crate) fn set_standing(&self, standing: Standing) {
        let mut evidence = self.evidence.lock();
        if standing == evidence.standing {
            return;
        }
        if evidence.standing == Standing::Current {
            evidence.breaks += 1;
            evidence.certified = false;
        }
        evidence.standing = standing;
        self.publish(&evidence, |_| {});
    }

    /// Begins a generation: from here on every Begin admits into it too.
    ///
    /// Rule A2: subscribe to admissions (publish the view), then copy the open set; the caller
    /// scans after that.
    pub(crate) fn start_generation(
        self: &Arc<Self>,
        blueprint: Blueprint,
    ) -> Result<Building, Error> {
        let number = self.generations_begun.fetch_add(1, Ordering::Relaxed) + 1;
        let generation = Arc::new(Generation::new(number, blueprint, &self.secret)?);
        let breaks = {
            let evidence = self.evidence.lock();
            self.publish(&evidence, |view| view.building = Some(Arc::clone(&generation)));
            evidence.breaks
        };
        self.open.for_each_admitted(|key| generation.insert(key.as_slice()));
        Ok(Building { gate: Arc::clone(self), generation, breaks })
    }

    /// The status of the gate, for the status document.
    pub(crate) fn snapshot(
        &self,
    ) -> (Option<Why>, Option<Arc<Generation>>, Option<Arc<Generation>>) {
        let view = self.view.load_full();
        (view.doubt, view.serving.clone(), view.building.clone())
    }

    /// True once any generation has been complete.
    pub(crate) fn was_complete(&self) -> bool {
        self.evidence.lock().was_complete
    }

    /// How often the standing was lost.
    pub(crate) fn breaks(&self) -> u64 {
        self.evidence.lock().breaks
    }

    /// True while a complete generation is in service whose standing was never broken.
    pub(crate) fn is_certified(&self) -> bool {
        self.evidence.lock().certified
    }

    /// The false-positive rate to expect of the generation in service at its present fill; 0
    /// without one.
    pub(crate) fn present_rate(&self) -> f64 {
        let view = self.view.load();
        view.serving.as_ref().map_or(0.0, |serving| serving.stats().current_false_positive_rate)
    }

    /// Replaces the view; the caller holds the evidence, so that replacements don't cross.
    fn publish(&self, evidence: &Evidence, change: impl FnOnce(&mut View)) {
        let old = self.view.load_full();
        let mut view = View {
            doubt: evidence.doubt(),
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
    breaks: u64,
}

impl Building {
    pub(crate) fn generation(&self) -> &Arc<Generation> {
        &self.generation
    }

    /// Puts the generation in service, in one step. The caller has seen the scan's explicit end.
    pub(crate) fn activate(self) -> Result<(), Why> {
        let mut evidence = self.gate.evidence.lock();
        if let Standing::Doubtful(why) = evidence.standing {
            return Err(why);
        }
        if evidence.breaks != self.breaks {
            return Err(Why::Rebuilding);
        }
        evidence.certified = true;
        evidence.was_complete = true;
        self.gate.publish(&evidence, |view| {
            view.serving = Some(Arc::clone(&self.generation));
            view.building = None;
        });
        Ok(())
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        let evidence = self.gate.evidence.lock();
        self.gate.publish(&evidence, |view| {
            if view.building.as_ref().is_some_and(|b| Arc::ptr_eq(b, &self.generation)) {
                view.building = None;
            }
        });
    }
}
