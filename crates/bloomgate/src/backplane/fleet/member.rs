//! The task that keeps this process a member: it registers, follows the log, renews its lease.
//!
//! One loop: read what was appended, apply it, say so with the next renewal. Whatever goes wrong
//! ends the session, and the next one registers anew. The lease ends by the clock meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::maintenance::Maintenance;
use super::record::{self, Op, RecordError};
use super::shared::Shared;
use crate::answer::OpenReason;
use crate::clock::Moment;
use crate::error::{BackplaneError, StoreError, StoreErrorKind};
use crate::key::KeyBytes;
use crate::ports::{
    CopyOffer, CopyRequest, FleetView, LinkState, LogEntry, LogFlag, LogIdentity, LogPosition,
    LogReader, PeerEvents, PeerWrite, Registration, Step, WriteId,
};

/// Between two sessions, at first.
const MIN_RETRY: Duration = Duration::from_millis(50);
/// Between two sessions, at most.
const MAX_RETRY: Duration = Duration::from_secs(1);

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
enum SessionEnd {
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("the log is another one, or the member was fenced")]
    Void,
    #[error("{0}")]
    Record(#[from] RecordError),
    #[error("{0}")]
    Full(BackplaneError),
}

/// The task.
#[derive(Debug)]
pub(super) struct Member {
    shared: Arc<Shared>,
    events: Arc<dyn PeerEvents>,
    incarnation: u64,
    /// Everything up to here has been applied, under this identity.
    applied: Option<(LogIdentity, LogPosition)>,
    /// Nothing that was trimmed up to here was missed: it was applied and said so, or was gone
    /// before this process registered.
    floor: LogPosition,
    /// Since when that identity has been the one that this process is registered under.
    identity_since: Moment,
    /// True once every open write is known (rule C26).
    knows_open_set: bool,
    /// Once this has been applied, every open write is known.
    known_at: Option<LogPosition>,
    /// The epoch in the names of the slots.
    epoch: Option<String>,
    in_sync: bool,
    outage: bool,
    maintenance: Maintenance,
}

impl Member {
    pub(super) fn new(shared: Arc<Shared>, events: Arc<dyn PeerEvents>) -> Self {
        Self {
            identity_since: shared.clock.now(),
            maintenance: Maintenance::new(Arc::clone(&shared)),
            shared,
            events,
            incarnation: 0,
            applied: None,
            floor: LogPosition::START,
            knows_open_set: false,
            known_at: None,
            epoch: None,
            in_sync: false,
            outage: false,
        }
    }

    /// Runs for ever.
    pub(super) async fn run(mut self) {
        let mut retry = MIN_RETRY;
        loop {
            let began = self.shared.clock.now();
            let Err(end) = self.session().await;
            self.take_end(&end).await;
            self.lapse();
            if self.shared.clock.now().since(began) > MAX_RETRY {
                retry = MIN_RETRY;
            }
            self.shared.clock.sleep(retry).await;
            self.lapse();
            retry = (retry * 2).min(MAX_RETRY);
        }
    }

    /// Logs the end of a session and stops refusing where what was missed can't be told.
    async fn take_end(&mut self, end: &SessionEnd) {
        let guard = &*self.shared.name;
        match end {
            SessionEnd::Store(error) if !self.outage => {
                self.outage = true;
                let server = self.shared.log.endpoint();
                tracing::warn!(guard, server, %error, "the log of the fleet can't be followed");
            }
            SessionEnd::Store(_) | SessionEnd::Void => {}
            SessionEnd::Record(_) | SessionEnd::Full(_) => {
                let reason = match end {
                    SessionEnd::Record(_) => OpenReason::UnknownRecords,
                    _ => OpenReason::LinkLost,
                };
                tracing::warn!(guard, error = %end, "this instance doesn't follow the fleet");
                // It stops refusing, then nobody has to wait for it.
                self.set_out_of_sync(reason);
                *self.shared.lease_end.lock() = self.shared.clock.now();
                self.remove_row().await;
            }
        }
    }

    async fn remove_row(&self) {
        let registered = self.shared.registered.lock().take();
        if let Some((identity, incarnation)) = registered {
            let shared = &self.shared;
            let remove = shared.log.remove(&identity, shared.instance, incarnation);
            // A row that stays is fenced by whoever waits for it.
            let _ = shared.step("remove", remove).await;
        }
    }

    /// Says that the link is lost once the lease has ended; the gate reads that end by itself.
    fn lapse(&mut self) {
        if self.in_sync && self.shared.clock.now() >= *self.shared.lease_end.lock() {
            tracing::warn!(guard = &*self.shared.name, "the lease has ended: the gate is open");
            self.set_out_of_sync(OpenReason::LinkLost);
        }
    }

    fn set_out_of_sync(&mut self, reason: OpenReason) {
        self.in_sync = false;
        self.events.set_link(LinkState::OutOfSync(reason));
    }

    /// Registers, catches up, and follows the log until something goes wrong.
    async fn session(&mut self) -> Result<std::convert::Infallible, SessionEnd> {
        let shared = Arc::clone(&self.shared);
        self.incarnation += 1;
        let mut registration = Registration::new(
            shared.instance,
            shared.settings.lease,
            shared.settings.label.clone(),
        );
        registration.incarnation = self.incarnation;
        registration.applied = self.applied.clone();
        let view = shared.step("register", shared.log.register(&registration)).await?;
        shared.observe(&view);
        *shared.registered.lock() = Some((view.identity.clone(), self.incarnation));
        let same_log = self.take_identity(&view);

        let follow = shared.log.follow();
        let mut reader = shared.step("follow", follow).await?;
        if reader.run() != view.identity.run {
            let message = "the log is read from another server than it is written to";
            return Err(StoreError::new(StoreErrorKind::InvalidResponse, message).into());
        }
        // Rule C22: the tail was read after the registration; all up to it is applied before a
        // lease is taken.
        while self.position() < view.last {
            let before = self.position();
            self.read(&mut *reader, shared.settings.step_timeout).await?;
            if self.position() == before {
                let message = "the log's entries can't be read";
                return Err(StoreError::new(StoreErrorKind::TimedOut, message).into());
            }
        }
        if !same_log {
            self.announce(&view).await?;
        }
        loop {
            let sent = shared.clock.now();
            self.renew(&view.identity, sent).await?;
            let until = sent + shared.settings.renew_every;
            self.read(&mut *reader, until.since(shared.clock.now())).await?;
        }
    }

    fn position(&self) -> LogPosition {
        self.applied.as_ref().map_or(LogPosition::START, |(_, position)| *position)
    }

    /// Compares the log with the one that was followed before; false if it is another one.
    fn take_identity(&mut self, view: &FleetView) -> bool {
        let shared = Arc::clone(&self.shared);
        match &self.applied {
            Some((identity, position)) if *identity == view.identity => {
                // At the start nothing has been missed yet.
                if *position != LogPosition::START && view.trimmed > *position {
                    self.resync_trimmed(view);
                }
                self.floor = self.position().max(view.trimmed);
                return true;
            }
            // Rules C24 and C26: with a lease that is still valid, every Begin that returned is
            // known here, and the gate is kept.
            Some(_) if self.knows_open_set && shared.clock.now() < *shared.lease_end.lock() => {
                tracing::info!(
                    guard = &*shared.name,
                    "the log is another one; the lease of the old one was valid, the gate is kept"
                );
            }
            Some(_) => {
                self.resync("the log is another one");
                self.knows_open_set = false;
            }
            None => self.knows_open_set = false,
        }
        self.start_over(view);
        self.floor = view.trimmed;
        self.identity_since = shared.clock.now();
        false
    }

    fn start_over(&mut self, view: &FleetView) {
        self.applied = Some((view.identity.clone(), LogPosition::START));
        self.known_at = None;
        self.maintenance = Maintenance::new(Arc::clone(&self.shared));
    }

    /// Entries went that this process had not read (rule C23).
    fn resync_trimmed(&mut self, view: &FleetView) {
        self.resync("entries that it had not read were trimmed");
        self.knows_open_set = false;
        self.identity_since = self.shared.clock.now();
        self.start_over(view);
    }

    /// What this process knows may be outdated.
    fn resync(&mut self, why: &'static str) {
        tracing::warn!(guard = &*self.shared.name, why, "resynchronising with the fleet");
        self.shared.counts.resyncs.fetch_add(1, Ordering::Relaxed);
        *self.shared.last_resync.lock() = Some(why);
        self.set_out_of_sync(OpenReason::Resyncing);
        self.events.void(OpenReason::Resyncing);
    }

    /// Rule C26: tells the others of the writes that are known to be open.
    async fn announce(&mut self, view: &FleetView) -> Result<(), SessionEnd> {
        let shared = &self.shared;
        let now = shared.clock.now();
        let mut ops: Vec<Op> =
            self.events.open_writes().iter().map(|write| Op::begin(write, now)).collect();
        if self.knows_open_set {
            ops.push(Op::OpenSetComplete);
        }
        for ops in ops.chunks(1_000) {
            let append = shared.log.append(shared.instance, record::encode(ops));
            let (_, now) = shared.step("announce", append).await?;
            shared.observe(&now);
            if now.identity != view.identity {
                return Err(SessionEnd::Void);
            }
        }
        if self.knows_open_set {
            self.set_open_set_known(&view.identity).await?;
        }
        Ok(())
    }

    async fn set_open_set_known(&self, identity: &LogIdentity) -> Result<(), SessionEnd> {
        let set = self.shared.log.set_flag(identity, LogFlag::OpenSetKnown);
        match self.shared.step("set a flag", set).await? {
            Step::Done(view) => self.shared.observe(&view),
            Step::Void(_) => return Err(SessionEnd::Void),
        }
        Ok(())
    }

    /// Applies what comes within `wait`.
    async fn read(&mut self, reader: &mut dyn LogReader, wait: Duration) -> Result<(), SessionEnd> {
        let after = self.position();
        let budget = wait + self.shared.settings.step_timeout;
        let entries = self.shared.within("read", budget, reader.next(after, wait)).await?;
        for entry in entries {
            self.apply(&entry)?;
            if let Some((_, position)) = &mut self.applied {
                *position = entry.position;
            }
        }
        *self.shared.applied.lock() = self.position();
        Ok(())
    }

    fn apply(&self, entry: &LogEntry) -> Result<(), SessionEnd> {
        if entry.appender == self.shared.instance {
            // In effect here since before it was appended.
            return Ok(());
        }
        for op in record::decode(&entry.record)? {
            match op {
                Op::Begin(open) => {
                    let write = open.to_write(&self.shared.clock);
                    self.events.begin(&write).map_err(SessionEnd::Full)?;
                }
                Op::End { key, write } => {
                    let key = KeyBytes::from_canonical(&key);
                    let write = WriteId::from_bytes(write);
                    self.events.end(&PeerWrite::new(key, write, false, Moment::NEVER));
                }
                Op::InvalidateAll => self.events.invalidate_all(),
                // The table's flag says the same, once it is appended.
                Op::OpenSetComplete => {}
                Op::CopyWanted { copy, gate, secret } => {
                    let shared = Arc::clone(&self.shared);
                    match self.events.offer_copy(&CopyRequest::new(gate, secret)) {
                        CopyOffer::Gate(source) => {
                            tokio::spawn(shared.give_copy(copy, source));
                        }
                        CopyOffer::OtherSecret => {
                            tokio::spawn(shared.refuse_copy(copy));
                        }
                        CopyOffer::NotNow | CopyOffer::OtherGate => {}
                    }
                }
                Op::CopyRefused { copy } => self.shared.refusals.lock().add(copy),
            }
        }
        Ok(())
    }

    /// Renews the lease with what has been applied (rule C20).
    async fn renew(&mut self, identity: &LogIdentity, sent: Moment) -> Result<(), SessionEnd> {
        let shared = Arc::clone(&self.shared);
        let position = self.position();
        let renew = shared.log.renew(identity, shared.instance, self.incarnation, position);
        let view = match shared.step("renew", renew).await? {
            Step::Done(view) => view,
            Step::Void(view) => {
                shared.observe(&view);
                return Err(SessionEnd::Void);
            }
        };
        shared.observe(&view);
        // Other members trim what this row says has been applied, and no more: a log over its cap
        // was trimmed, maybe between two reads.
        if view.trimmed > self.floor {
            self.resync_trimmed(&view);
            return Err(SessionEnd::Void);
        }
        self.floor = self.floor.max(position);
        // It counts from before the renewal was sent.
        let until = sent + shared.settings.lease_held();
        *shared.lease_end.lock() = until;
        if self.outage {
            self.outage = false;
            let server = shared.log.endpoint();
            tracing::info!(guard = &*shared.name, server, "the log of the fleet is followed again");
        }
        self.learn_open_set(&view, sent).await?;
        if self.knows_open_set {
            let epoch = identity.slot_epoch();
            if self.epoch.as_ref() != Some(&epoch) {
                shared.log.name_server(identity);
                self.events.set_epoch(&epoch);
                self.epoch = Some(epoch);
            }
            self.events.set_link(LinkState::InSync { until });
            if !self.in_sync {
                self.in_sync = true;
                let members = view.members.len();
                tracing::info!(guard = &*shared.name, members, "in sync with the fleet");
            }
        }
        self.maintenance.run(&view, sent).await;
        Ok(())
    }

    /// Rule C26: all open writes are known once somebody who knew them has announced them and that
    /// has been applied, or once W has passed since the registration.
    async fn learn_open_set(&mut self, view: &FleetView, now: Moment) -> Result<(), SessionEnd> {
        if self.knows_open_set {
            return Ok(());
        }
        if view.open_set_known {
            let known_at = *self.known_at.get_or_insert(view.last);
            self.knows_open_set = self.position() >= known_at;
        } else if now.since(self.identity_since) >= self.shared.settings.write_window {
            self.set_open_set_known(&view.identity).await?;
            self.knows_open_set = true;
        }
        Ok(())
    }
}
