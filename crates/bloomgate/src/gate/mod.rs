//! The gate: generations of the filter, the open writes, and the certificate to refuse.
//!
//! The gate answers [`Verdict::Absent`] only under a certificate: a generation whose warm-up ended
//! with an explicit success is in service, every id admitted since is in it, and the link to the
//! other instances is in sync, within a lease that hasn't ended. In any doubt the verdict is
//! [`Verdict::Unknown`].
//!
//! Two kinds of doubt: one that passes (the link is lost, the lease has ended), after which the
//! same generation refuses again, and a void (admissions may have been missed), which only a new
//! generation ends.

mod building;
mod certificate;
mod config;
mod copying;
mod generation;
mod link;
mod open_writes;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use bloomgate_filter::{Key, Secret};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::answer::{OpenReason, Verdict};
use crate::clock::Clock;
use crate::key::KeyBytes;
use crate::ports::{LinkState, PeerWrite};

pub(crate) use building::Building;
use certificate::CertificateState;
pub use config::Gate;
pub(crate) use config::{Capacity, GateSettings, GenerationSpec};
use copying::Recording;
pub(crate) use generation::Generation;
use link::LeaseEnd;
pub(crate) use open_writes::{LimitReached, OpenWrites};

/// What a reader sees: one consistent picture, replaced as a whole.
#[derive(Debug)]
struct View {
    /// `None` while the certificate is valid.
    open_reason: Option<OpenReason>,
    /// True while nothing is in doubt about what other instances write.
    spares_caches: bool,
    lease_end: LeaseEnd,
    serving: Option<Arc<Generation>>,
    building: Option<Arc<Generation>>,
    /// Takes what is admitted while a copy is under way.
    recording: Option<Arc<Recording>>,
}

/// What the task that builds generations waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkEvents {
    /// True while the link is in sync.
    pub(crate) in_sync: bool,
    /// How often admissions may have been missed.
    pub(crate) voids: u64,
}

/// What is known of a key that an open gate passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// The last complete generation has it, or a false positive of it.
    Maybe,
    /// The last complete generation doesn't have it.
    No,
    /// No generation has been complete.
    Unknown,
}

/// The state of the gate, for the status document.
#[derive(Debug)]
pub(crate) struct GateSnapshot {
    /// `None` while the gate refuses.
    pub(crate) open_reason: Option<OpenReason>,
    pub(crate) serving: Option<Arc<Generation>>,
    pub(crate) building: Option<Arc<Generation>>,
}

/// The gate of one guard.
#[derive(Debug)]
pub(crate) struct LiveGate {
    view: ArcSwap<View>,
    state: Mutex<CertificateState>,
    open: OpenWrites,
    secret: Secret,
    generations_begun: AtomicU64,
    link_events: watch::Sender<LinkEvents>,
    clock: Clock,
}

impl LiveGate {
    pub(crate) fn new(secret: Secret, forced_open: bool, max_writes: usize, clock: Clock) -> Self {
        let state = CertificateState::new(forced_open);
        let view = View {
            open_reason: state.open_reason(),
            spares_caches: state.spares_caches(),
            lease_end: LeaseEnd::ended(),
            serving: None,
            building: None,
            recording: None,
        };
        Self {
            view: ArcSwap::from_pointee(view),
            link_events: watch::Sender::new(LinkEvents { in_sync: false, voids: 0 }),
            state: Mutex::new(state),
            open: OpenWrites::new(max_writes, clock.clone()),
            secret,
            generations_begun: AtomicU64::new(0),
            clock,
        }
    }

    /// The refusal path: one load, one hash, one cache line, and under a lease one reading of the
    /// clock. Allocates nothing, waits for nothing.
    pub(crate) fn check<K: Key>(&self, key: &K) -> Verdict {
        let view = self.view.load();
        let serving = match (view.open_reason, &view.serving) {
            (None, Some(serving)) => serving,
            (reason, _) => return Verdict::Unknown(reason.unwrap_or(OpenReason::Warming)),
        };
        if key.with_bytes(|bytes| serving.contains(bytes)) {
            return Verdict::Maybe;
        }
        // After the look-up: a process that is paused between the two must find the lease ended.
        if view.lease_end.has_passed(&self.clock) {
            return Verdict::Unknown(OpenReason::LeaseEnded);
        }
        Verdict::Absent
    }

    /// What is known of a key that an open gate passes.
    pub(crate) fn known(&self, key: &KeyBytes) -> Known {
        if !self.state.lock().was_complete() {
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

    /// True while what is cached, here or in the shared cache, can't have been outdated by a write
    /// that this instance doesn't know of (rules C20 and C26). To be asked after the look-up, as in
    /// [`check`](Self::check).
    pub(crate) fn spares_caches(&self) -> bool {
        let view = self.view.load();
        view.spares_caches && !view.lease_end.has_passed(&self.clock)
    }

    /// The gate's part of Begin, for a write of this instance or of another.
    ///
    /// Rule A1: the open set first, then the view, then all its generations. A rebuild that
    /// publishes its generation after our look at the view copies the open set after that, and
    /// finds the key there.
    pub(crate) fn begin(&self, write: &PeerWrite) -> Result<(), LimitReached> {
        self.open.enter(write)?;
        if write.admits {
            let view = self.view.load_full();
            for generation in [&view.serving, &view.building].into_iter().flatten() {
                generation.insert(write.key.as_slice());
            }
            if let Some(recording) = &view.recording {
                recording.add(&write.key);
            }
        }
        Ok(())
    }

    /// Takes the state of the link.
    pub(crate) fn set_link(&self, link: LinkState) {
        let mut state = self.state.lock();
        let lease_end = self.view.load().lease_end.clone();
        match link {
            LinkState::InSync { until } => {
                lease_end.extend_to(until);
                if state.is_in_sync() {
                    // A renewal: readers hold the same atomic.
                    return;
                }
                state.set_link_doubt(None);
            }
            LinkState::OutOfSync(reason) => {
                lease_end.end();
                state.set_link_doubt(Some(reason));
            }
        }
        self.publish(&state, |_| {});
    }

    /// Admissions may have been missed: the certificate is void until a generation that is begun
    /// from here on is complete.
    pub(crate) fn void(&self) {
        let mut state = self.state.lock();
        state.void();
        self.publish(&state, |view| {
            // A thread that holds an older view must not be trusted by a lease that is renewed.
            let renewed = LeaseEnd::ended();
            renewed.continue_from(&view.lease_end);
            view.lease_end.end();
            view.lease_end = renewed;
        });
    }

    /// Stops refusing, for good.
    pub(crate) fn shut_down(&self) {
        let mut state = self.state.lock();
        state.shut_down();
        self.publish(&state, |_| {});
    }

    /// Begins a generation for a source of `rows` keys: from here on every Begin admits into it
    /// too.
    ///
    /// Rule A2: subscribe to admissions (publish the view), then copy the open set; the caller
    /// scans after that.
    pub(crate) fn start_generation(
        self: &Arc<Self>,
        spec: &GenerationSpec,
        rows: u64,
    ) -> Result<Building, bloomgate_filter::Error> {
        let filter = spec.new_filter(rows, &self.secret)?;
        let generation = Arc::new(Generation::new(self.next_number(), filter));
        let voids = {
            let state = self.state.lock();
            self.publish(&state, |view| view.building = Some(Arc::clone(&generation)));
            state.voids()
        };
        self.open.for_each_admitted(|key| generation.insert(key.as_slice()));
        Ok(Building { gate: Arc::clone(self), generation, voids })
    }

    /// The secret of the gate's hash.
    pub(crate) fn secret(&self) -> &Secret {
        &self.secret
    }

    fn next_number(&self) -> u64 {
        self.generations_begun.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The state of the gate, for the status document.
    pub(crate) fn snapshot(&self) -> GateSnapshot {
        let view = self.view.load_full();
        let lease_ended =
            || view.lease_end.has_passed(&self.clock).then_some(OpenReason::LeaseEnded);
        GateSnapshot {
            open_reason: view.open_reason.or_else(lease_ended),
            serving: view.serving.clone(),
            building: view.building.clone(),
        }
    }

    /// Why the gate is open; `None` while it refuses.
    pub(crate) fn open_reason(&self) -> Option<OpenReason> {
        self.snapshot().open_reason
    }

    /// True while a complete generation is in service that nothing has voided.
    pub(crate) fn is_certified(&self) -> bool {
        self.state.lock().is_certified()
    }

    /// What the task that builds generations waits for.
    pub(crate) fn link_events(&self) -> watch::Receiver<LinkEvents> {
        self.link_events.subscribe()
    }

    /// The false-positive rate to expect of the generation in service at its current fill; 0
    /// without one.
    pub(crate) fn current_rate(&self) -> f64 {
        let view = self.view.load();
        view.serving.as_ref().map_or(0.0, |serving| serving.stats().current_false_positive_rate)
    }

    /// Replaces the view; the caller holds the state, so that replacements don't cross.
    fn publish(&self, state: &CertificateState, change: impl FnOnce(&mut View)) {
        let old = self.view.load_full();
        let mut view = View {
            open_reason: state.open_reason(),
            spares_caches: state.spares_caches(),
            lease_end: old.lease_end.clone(),
            serving: old.serving.clone(),
            building: old.building.clone(),
            recording: old.recording.clone(),
        };
        change(&mut view);
        self.view.store(Arc::new(view));
        let events = LinkEvents { in_sync: state.is_in_sync(), voids: state.voids() };
        self.link_events.send_if_modified(|last| std::mem::replace(last, events) != events);
    }
}
