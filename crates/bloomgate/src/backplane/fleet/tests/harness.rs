//! Members over one log in memory, each with a recorder in the place of a guard.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::super::{Fleet, FleetSettings};
use crate::answer::OpenReason;
use crate::clock::{Clock, ManualTime, Moment};
use crate::error::BackplaneError;
use crate::key::KeyBytes;
use crate::ports::{Backplane, LinkState, PeerEvents, PeerWrite, WriteId};
use crate::shared_cache::MemoryFleetLog;

pub(super) const LEASE: Duration = Duration::from_secs(3);
pub(super) const WINDOW: Duration = Duration::from_secs(30);
/// Longer than any answer takes where nothing is waited for.
pub(super) const SOON: Duration = Duration::from_millis(100);

/// What a guard would do with the events.
#[derive(Debug)]
pub(super) struct Recorder {
    clock: Clock,
    link: Mutex<LinkState>,
    open: Mutex<HashMap<WriteId, PeerWrite>>,
    admitted: Mutex<HashSet<KeyBytes>>,
    certified: Mutex<bool>,
    pub(super) voids: AtomicU64,
    pub(super) epochs: Mutex<Vec<String>>,
    /// Begins beyond this many open writes are refused.
    pub(super) limit: Mutex<usize>,
}

impl Recorder {
    /// Whether the gate would refuse this key.
    pub(super) fn refuses(&self, key: i64) -> bool {
        self.in_sync() && *self.certified.lock() && !self.has(key)
    }

    /// Whether the gate holds this key.
    pub(super) fn has(&self, key: i64) -> bool {
        self.admitted.lock().contains(&KeyBytes::of(&key))
    }

    pub(super) fn is_open(&self, key: i64) -> bool {
        let key = KeyBytes::of(&key);
        let now = self.clock.now();
        self.open.lock().values().any(|open| open.key == key && now < open.deadline)
    }

    /// Whether the lease is valid, by the clock alone.
    pub(super) fn in_sync(&self) -> bool {
        matches!(*self.link.lock(), LinkState::InSync { until } if self.clock.now() < until)
    }

    pub(super) fn out_of_sync(&self) -> Option<OpenReason> {
        match *self.link.lock() {
            LinkState::InSync { .. } => None,
            LinkState::OutOfSync(reason) => Some(reason),
        }
    }

    pub(super) fn voids(&self) -> u64 {
        self.voids.load(Ordering::Relaxed)
    }

    fn admit(&self, write: &PeerWrite) {
        self.open.lock().insert(write.write, write.clone());
        if write.admits {
            self.admitted.lock().insert(write.key.clone());
        }
    }
}

impl PeerEvents for Recorder {
    fn set_link(&self, state: LinkState) {
        *self.link.lock() = state;
    }

    fn void(&self, _: OpenReason) {
        self.voids.fetch_add(1, Ordering::Relaxed);
        *self.certified.lock() = false;
    }

    fn begin(&self, write: &PeerWrite) -> Result<(), BackplaneError> {
        if self.open.lock().len() >= *self.limit.lock() {
            return Err(BackplaneError("too many writes are open".into()));
        }
        self.admit(write);
        Ok(())
    }

    fn end(&self, write: &PeerWrite) {
        self.open.lock().remove(&write.write);
    }

    fn invalidate_all(&self) {}

    fn open_writes(&self) -> Vec<PeerWrite> {
        self.open.lock().values().cloned().collect()
    }

    fn set_epoch(&self, epoch: &str) {
        self.epochs.lock().push(epoch.to_owned());
    }
}

/// One instance.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    pub(super) fleet: Arc<Fleet>,
    pub(super) events: Arc<Recorder>,
    clock: Clock,
}

impl Instance {
    /// The local part of Begin, then the fleet's.
    pub(super) async fn begin(&self, key: i64) -> Result<PeerWrite, BackplaneError> {
        let deadline = self.clock.now() + WINDOW;
        let write = PeerWrite::new(KeyBytes::of(&key), WriteId::fresh(), true, deadline);
        self.events.admit(&write);
        self.fleet.begin_write(&write).await.map(|_epoch| write)
    }

    /// [`begin`](Self::begin) in a task.
    pub(super) fn begin_in_task(&self, key: i64) -> Begin {
        let instance = self.clone();
        Begin(tokio::spawn(async move { instance.begin(key).await }))
    }

    /// The local part of End, then the fleet's.
    pub(super) async fn end(&self, write: &PeerWrite) -> Result<(), BackplaneError> {
        self.events.end(write);
        self.fleet.end_write(write).await
    }

    /// Stops the member's task, as a pause of the process does, without its leaving.
    pub(super) fn stop(&self) {
        if let Some(running) = &*self.fleet.running.lock() {
            running.member.abort();
        }
    }
}

/// A Begin under way.
#[derive(Debug)]
pub(super) struct Begin(tokio::task::JoinHandle<Result<PeerWrite, BackplaneError>>);

impl Begin {
    pub(super) fn is_over(&self) -> bool {
        self.0.is_finished()
    }

    pub(super) async fn outcome(self) -> Result<PeerWrite, BackplaneError> {
        self.0.await.unwrap()
    }
}

/// The fleet.
#[derive(Debug)]
pub(super) struct Harness {
    pub(super) log: MemoryFleetLog,
    pub(super) clock: Clock,
    time: ManualTime,
}

impl Harness {
    pub(super) fn new() -> Self {
        let (clock, time) = Clock::manual();
        Self { log: MemoryFleetLog::new(clock.clone()), clock, time }
    }

    /// A fleet of this many members that know all open writes.
    pub(super) async fn in_sync(members: usize) -> (Self, Vec<Instance>) {
        let harness = Self::new();
        let first = harness.join();
        harness.pass(WINDOW + LEASE).await;
        assert!(first.events.in_sync());
        let mut instances = vec![first];
        while instances.len() < members {
            instances.push(harness.join());
            harness.pass(SOON).await;
        }
        assert!(instances.iter().all(|instance| instance.events.in_sync()));
        (harness, instances)
    }

    /// A new instance with a complete gate.
    pub(super) fn join(&self) -> Instance {
        self.join_with(FleetSettings::default())
    }

    pub(super) fn join_with(&self, settings: FleetSettings) -> Instance {
        let log = Arc::new(self.log.clone());
        let fleet = Fleet::new("test".into(), log, settings, self.clock.clone());
        let events = Arc::new(Recorder {
            clock: self.clock.clone(),
            link: Mutex::new(LinkState::OutOfSync(OpenReason::Joining)),
            open: Mutex::default(),
            admitted: Mutex::default(),
            certified: Mutex::new(true),
            voids: AtomicU64::new(0),
            epochs: Mutex::default(),
            limit: Mutex::new(usize::MAX),
        });
        let fleet = Arc::new(fleet);
        fleet.attach(Arc::clone(&events) as Arc<dyn PeerEvents>).unwrap();
        Instance { fleet, events, clock: self.clock.clone() }
    }

    /// Lets `time` pass in small steps, in which all tasks run.
    pub(super) async fn pass(&self, time: Duration) {
        let end = self.clock.now() + time;
        self.run().await;
        while self.clock.now() < end {
            self.time.advance(Duration::from_millis(25));
            self.run().await;
        }
    }

    /// [`pass`](Self::pass), with a check after every step of any task.
    pub(super) async fn pass_checking(&self, time: Duration, check: impl Fn()) {
        let end = self.clock.now() + time;
        while self.clock.now() < end {
            self.time.advance(Duration::from_millis(25));
            for _ in 0..60 {
                tokio::task::yield_now().await;
                check();
            }
        }
    }

    /// Lets `time` pass at once, as a pause of all processes does.
    pub(super) async fn leap(&self, time: Duration) {
        self.time.advance(time);
        self.run().await;
    }

    /// Lets all tasks run until they wait.
    pub(super) async fn run(&self) {
        for _ in 0..60 {
            tokio::task::yield_now().await;
        }
    }

    pub(super) fn now(&self) -> Moment {
        self.clock.now()
    }
}
