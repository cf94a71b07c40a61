//! A declared single instance over a log in memory.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::DeclaredSingle;
use crate::answer::OpenReason;
use crate::clock::{Clock, ManualTime};
use crate::error::{BackplaneError, ConfigError};
use crate::key::KeyBytes;
use crate::ports::{
    Backplane as _, FleetLog as _, InstanceId, LinkState, PeerEvents, PeerWrite, Registration,
    WriteId,
};
use crate::shared_cache::MemoryFleetLog;

const LEASE: Duration = Duration::from_secs(3);
const SOON: Duration = Duration::from_millis(100);

/// What a guard is told.
#[derive(Debug, Default)]
struct Recorder {
    link: Mutex<Option<LinkState>>,
    epochs: Mutex<Vec<String>>,
    voids: Mutex<u32>,
}

impl Recorder {
    fn is_in_sync(&self) -> bool {
        matches!(*self.link.lock(), Some(LinkState::InSync { .. }))
    }
}

impl PeerEvents for Recorder {
    fn set_link(&self, state: LinkState) {
        *self.link.lock() = Some(state);
    }

    fn void(&self, _: OpenReason) {
        *self.voids.lock() += 1;
    }

    fn begin(&self, _: &PeerWrite) -> Result<(), BackplaneError> {
        Ok(())
    }

    fn end(&self, _: &PeerWrite) {}

    fn invalidate_all(&self) {}

    fn open_writes(&self) -> Vec<PeerWrite> {
        Vec::new()
    }

    fn set_epoch(&self, epoch: &str) {
        self.epochs.lock().push(epoch.to_owned());
    }
}

struct Harness {
    log: MemoryFleetLog,
    clock: Clock,
    time: ManualTime,
    events: Arc<Recorder>,
}

impl Harness {
    fn new() -> Self {
        let (clock, time) = Clock::manual();
        let log = MemoryFleetLog::new(clock.clone());
        Self { log, clock, time, events: Arc::default() }
    }

    async fn open(&self) -> Result<DeclaredSingle, ConfigError> {
        let log = Arc::new(self.log.clone());
        DeclaredSingle::open("test".into(), log, SOON, self.clock.clone()).await
    }

    fn attach(&self, single: &DeclaredSingle) {
        single.attach(Arc::clone(&self.events) as Arc<dyn PeerEvents>).unwrap();
    }

    async fn pass(&self, time: Duration) {
        let end = self.clock.now() + time;
        while self.clock.now() < end {
            self.time.advance(Duration::from_millis(25));
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        }
    }
}

fn write(clock: &Clock) -> PeerWrite {
    PeerWrite::new(KeyBytes::of(&7_i64), WriteId::fresh(), true, clock.now() + LEASE)
}

#[tokio::test]
async fn it_is_in_sync_for_ever_and_its_slots_keep_their_epoch_over_a_restart() {
    let harness = Harness::new();
    for _ in 0..2 {
        let single = harness.open().await.unwrap();
        harness.attach(&single);
        assert!(harness.events.is_in_sync());
        single.begin_write(&write(&harness.clock)).await.unwrap();
    }
    let epochs = harness.events.epochs.lock().clone();
    assert_eq!(epochs.len(), 2);
    assert_eq!(epochs[0], epochs[1]);
    assert_eq!(harness.log.look().await.unwrap(), None, "it has no table");
}

// The slots may hold what was cached in an epoch that isn't known yet, so no write may miss them.
#[tokio::test]
async fn while_the_server_is_away_it_is_in_sync_and_no_write_begins() {
    let harness = Harness::new();
    harness.log.set_reachable(false);
    let single = harness.open().await.unwrap();
    harness.attach(&single);
    harness.pass(LEASE).await;
    assert!(harness.events.is_in_sync());
    assert!(single.begin_write(&write(&harness.clock)).await.is_err());
    assert!(harness.events.epochs.lock().is_empty());
    harness.log.set_reachable(true);
    harness.pass(LEASE).await;
    assert_eq!(harness.events.epochs.lock().len(), 1);
    single.begin_write(&write(&harness.clock)).await.unwrap();
    assert_eq!(*harness.events.voids.lock(), 0);
}

#[tokio::test]
async fn a_live_member_that_shows_after_an_outage_opens_the_gate_until_it_is_gone() {
    let harness = Harness::new();
    harness.log.set_reachable(false);
    let single = harness.open().await.unwrap();
    harness.attach(&single);
    harness.log.set_reachable(true);
    let member = Registration::new(InstanceId::fresh(), LEASE, "another");
    let view = harness.log.register(&member).await.unwrap();
    for _ in 0..20 {
        let position = view.last;
        let renewed = harness.log.renew(&view.identity, member.instance, 1, position);
        let _ = renewed.await.unwrap();
        harness.pass(LEASE / 10).await;
    }
    assert_eq!(*harness.events.link.lock(), Some(LinkState::OutOfSync(OpenReason::LinkLost)));
    assert!(single.begin_write(&write(&harness.clock)).await.is_err());
    harness.pass(LEASE * 3).await;
    assert!(harness.events.is_in_sync());
    assert_eq!(*harness.events.voids.lock(), 1, "what the other one wrote is not known");
    single.begin_write(&write(&harness.clock)).await.unwrap();
}
