//! What the tasks of one member share.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::barrier::{LeaseWaits, RowId};
use super::copies::Refusals;
use super::settings::FleetSettings;
use crate::clock::{Clock, Moment};
use crate::error::{StoreError, StoreErrorKind};
use crate::ports::{
    FleetLog, FleetView, InstanceId, LogFlag, LogIdentity, LogPosition, Step, WriteId,
};

/// The state of one member.
#[derive(Debug)]
pub(super) struct Shared {
    /// The namespace, for log lines.
    pub(super) name: Arc<str>,
    pub(super) log: Arc<dyn FleetLog>,
    pub(super) settings: FleetSettings,
    pub(super) instance: InstanceId,
    pub(super) clock: Clock,
    pub(super) waits: Mutex<LeaseWaits>,
    /// The last view that any step returned.
    pub(super) latest: Mutex<Option<FleetView>>,
    /// Under which identity the row was registered last, and as which incarnation.
    pub(super) registered: Mutex<Option<(LogIdentity, u64)>>,
    /// Everything up to here has been applied.
    pub(super) applied: Mutex<LogPosition>,
    /// Why this process had to resynchronise, the last time.
    pub(super) last_resync: Mutex<Option<&'static str>>,
    /// When the lease ends; in the past without one.
    pub(super) lease_end: Mutex<Moment>,
    /// Under which identity each open write of this process has begun, and until when it may be
    /// open.
    begun: Mutex<HashMap<WriteId, (LogIdentity, Moment)>>,
    /// Requests for a copy of the gate that were refused for their secret.
    pub(super) refusals: Mutex<Refusals>,
    /// Why this process was refused a copy, the last time.
    pub(super) last_copy_refusal: Mutex<Option<&'static str>>,
    /// True while this process gives a copy.
    pub(super) gives_copy: AtomicBool,
    pub(super) counts: Counts,
}

/// Counters of one member.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) resyncs: AtomicU64,
    pub(super) copies_taken: AtomicU64,
    pub(super) copies_given: AtomicU64,
    pub(super) fenced_others: AtomicU64,
    pub(super) writes_waited: AtomicU64,
    pub(super) longest_wait_ms: AtomicU64,
}

/// Entries of `begun` beyond which those that are over are looked for.
const MANY_BEGUN: usize = 1_000;

impl Shared {
    pub(super) fn new(
        name: Arc<str>,
        log: Arc<dyn FleetLog>,
        settings: FleetSettings,
        clock: Clock,
    ) -> Self {
        Self {
            name,
            log,
            settings,
            instance: InstanceId::fresh(),
            waits: Mutex::default(),
            latest: Mutex::default(),
            registered: Mutex::default(),
            applied: Mutex::default(),
            last_resync: Mutex::default(),
            lease_end: Mutex::new(clock.now()),
            begun: Mutex::default(),
            refusals: Mutex::default(),
            last_copy_refusal: Mutex::default(),
            gives_copy: AtomicBool::new(false),
            counts: Counts::default(),
            clock,
        }
    }

    /// One step of the server within its budget.
    pub(super) async fn step<T>(
        &self,
        what: &'static str,
        step: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let budget = self.settings.step_timeout;
        self.within(what, budget, step).await
    }

    /// [`step`](Self::step) with another budget.
    pub(super) async fn within<T>(
        &self,
        what: &'static str,
        budget: Duration,
        step: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.clock.timeout(budget, step).await.unwrap_or_else(|_elapsed| {
            let message = format!("{what}: no answer within {budget:?}");
            Err(StoreError::new(StoreErrorKind::TimedOut, message))
        })
    }

    /// Takes note of a view that has just been received.
    pub(super) fn observe(&self, view: &FleetView) {
        self.waits.lock().observe(view, self.clock.now());
        *self.latest.lock() = Some(view.clone());
    }

    /// A Begin of this process has returned under `identity`.
    pub(super) fn has_begun(&self, write: WriteId, identity: LogIdentity, deadline: Moment) {
        let mut begun = self.begun.lock();
        if begun.len() >= MANY_BEGUN {
            let now = self.clock.now();
            begun.retain(|_, (_, deadline)| now < *deadline);
        }
        begun.insert(write, (identity, deadline));
    }

    /// Under which identity the write has begun.
    pub(super) fn begun_under(&self, write: WriteId) -> Option<LogIdentity> {
        self.begun.lock().get(&write).map(|(identity, _)| identity.clone())
    }

    pub(super) fn has_ended(&self, write: WriteId) {
        self.begun.lock().remove(&write);
    }

    /// True if the log in which the write has begun isn't the one there is.
    pub(super) fn begin_is_lost(&self, write: WriteId) -> bool {
        let Some(begun) = self.begun_under(write) else { return false };
        self.latest.lock().as_ref().is_some_and(|view| view.identity != begun)
    }

    /// Counts a write that had to wait for other members.
    pub(super) fn count_wait(&self, since: Moment) {
        let waited = self.clock.now().since(since).as_millis();
        let waited = u64::try_from(waited).unwrap_or(u64::MAX);
        self.counts.writes_waited.fetch_add(1, Ordering::Relaxed);
        self.counts.longest_wait_ms.fetch_max(waited, Ordering::Relaxed);
    }

    /// Takes a silent member's leases away (rule C21).
    pub(super) async fn fence(&self, view: &FleetView, (instance, incarnation): RowId) {
        let fence = self.log.fence(&view.identity, instance, incarnation);
        // A failure shows in the next view: the row isn't fenced.
        if let Ok(step) = self.step("fence", fence).await {
            if matches!(step, Step::Done(_)) {
                self.counts.fenced_others.fetch_add(1, Ordering::Relaxed);
                let label = view.row(instance).map_or("", |row| row.label.as_str());
                let member = instance.to_hex();
                tracing::warn!(guard = &*self.name, member, label, "fenced a silent member");
            }
            let (Step::Done(view) | Step::Void(view)) = step;
            self.observe(&view);
        }
    }

    /// Sets the flag of rule C25 once a lease has been waited for since the identity was seen, by a
    /// look that was asked for after that.
    pub(super) async fn settle(&self, view: &FleetView, asked: Moment) {
        let from = self.waits.lock().settled_from(self.settings.lease);
        if view.settled || from.is_none_or(|from| asked < from) {
            return;
        }
        let settle = self.log.set_flag(&view.identity, LogFlag::Settled);
        // Tried again after the next look.
        if let Ok(Step::Done(view)) = self.step("settle", settle).await {
            self.observe(&view);
        }
    }
}
