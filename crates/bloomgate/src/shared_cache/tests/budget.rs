//! What an outage may cost, on a clock that moves by hand.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, pending};
use parking_lot::Mutex;

use super::super::{MemoryStore, SharedCache};
use super::store_fixture::fresh_prefix;
use crate::clock::{Clock, ManualTime};
use crate::error::{StoreError, StoreErrorKind};
use crate::key::KeyBytes;
use crate::ports::{Entry, Filled, InstanceId, LeaseId, Peer, Slot, SlotKey, Store, WriteId};
use crate::telemetry::SharedCounts;

const BUDGET: Duration = Duration::from_millis(100);

/// What a store does to whoever asks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mood {
    Well,
    Silent,
    Fails(StoreErrorKind),
}

#[derive(Debug)]
struct FaultyStore {
    store: MemoryStore,
    mood: Mutex<Mood>,
    prepared: Mutex<u32>,
    asked: Mutex<u32>,
}

impl FaultyStore {
    fn then<'a, T: Send + 'a>(
        &'a self,
        well: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            *self.asked.lock() += 1;
            let mood = *self.mood.lock();
            match mood {
                Mood::Well => well.await,
                Mood::Silent => pending().await,
                Mood::Fails(kind) => Err(StoreError::new(kind, format!("{kind:?}"))),
            }
        })
    }
}

impl Store for FaultyStore {
    fn prepare(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            *self.prepared.lock() += 1;
            self.then(self.store.prepare()).await
        })
    }

    fn get_or_lease<'a>(
        &'a self,
        slot: &'a SlotKey,
        lease: LeaseId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Slot, StoreError>> {
        self.then(self.store.get_or_lease(slot, lease, ttl))
    }

    fn get<'a>(&'a self, slot: &'a SlotKey) -> BoxFuture<'a, Result<Slot, StoreError>> {
        self.then(self.store.get(slot))
    }

    fn fill<'a>(
        &'a self,
        slot: &'a SlotKey,
        lease: LeaseId,
        entry: Entry,
        until: u64,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Filled, StoreError>> {
        self.then(self.store.fill(slot, lease, entry, until, ttl))
    }

    fn release<'a>(
        &'a self,
        slot: &'a SlotKey,
        lease: LeaseId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.then(self.store.release(slot, lease))
    }

    fn put_intent<'a>(
        &'a self,
        slot: &'a SlotKey,
        write: WriteId,
        lives: Duration,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.then(self.store.put_intent(slot, write, lives))
    }

    fn clear_intent<'a>(
        &'a self,
        slot: &'a SlotKey,
        write: WriteId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.then(self.store.clear_intent(slot, write))
    }

    fn heartbeat<'a>(
        &'a self,
        namespace: &'a str,
        member: InstanceId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Vec<Peer>, StoreError>> {
        self.then(self.store.heartbeat(namespace, member, ttl))
    }

    fn leave<'a>(
        &'a self,
        namespace: &'a str,
        member: InstanceId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.then(self.store.leave(namespace, member))
    }
}

struct Bench {
    faulty: Arc<FaultyStore>,
    shared: SharedCache,
    counts: Arc<SharedCounts>,
    time: ManualTime,
    slot: SlotKey,
}

impl Bench {
    fn new(mood: Mood) -> Self {
        let (clock, time) = Clock::manual();
        let counts = Arc::new(SharedCounts::default());
        let faulty = Arc::new(FaultyStore {
            store: MemoryStore::new(clock.clone()),
            mood: Mutex::new(mood),
            prepared: Mutex::new(0),
            asked: Mutex::new(0),
        });
        let store = Arc::clone(&faulty) as Arc<dyn Store>;
        Self {
            shared: SharedCache::new(store, BUDGET, clock, Arc::clone(&counts)),
            faulty,
            counts,
            time,
            slot: SlotKey::new(fresh_prefix(), KeyBytes::of(&1_i64)),
        }
    }

    fn feels(&self, mood: Mood) {
        *self.faulty.mood.lock() = mood;
    }

    fn asked(&self) -> u32 {
        *self.faulty.asked.lock()
    }

    fn prepared(&self) -> u32 {
        *self.faulty.prepared.lock()
    }

    /// The fault of a read that needs no time; `None` if it succeeds.
    async fn kind(&self) -> Option<StoreErrorKind> {
        let read = self.shared.get(&self.slot).await;
        read.err().map(|error| error.kind())
    }
}

#[tokio::test]
async fn case_20_a_silent_store_costs_one_budget_a_call_until_the_breaker_opens() {
    let bench = Bench::new(Mood::Silent);
    for _ in 0..3 {
        let mut reading = Box::pin(bench.shared.get(&bench.slot));
        assert!((&mut reading).now_or_never().is_none());
        bench.time.advance(BUDGET - Duration::from_millis(1));
        assert!((&mut reading).now_or_never().is_none());
        bench.time.advance(Duration::from_millis(1));
        let error = reading.await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::TimedOut);
    }
    assert_eq!(bench.asked(), 3);
    for _ in 0..100 {
        assert_eq!(bench.kind().await, Some(StoreErrorKind::Unreachable));
    }
    assert_eq!(bench.asked(), 3, "the open breaker asks nobody");
    assert_eq!(bench.counts.errors.get(), 103);
    assert!(bench.shared.last_error().is_some());

    bench.feels(Mood::Well);
    bench.time.advance(Duration::from_millis(250));
    assert_eq!(bench.kind().await, None);
    assert_eq!(bench.kind().await, None);
    assert_eq!(bench.shared.last_error(), None);
}

#[tokio::test]
async fn one_budget_covers_the_preparation_too() {
    let bench = Bench::new(Mood::Silent);
    let mut reading = Box::pin(bench.shared.get(&bench.slot));
    assert!((&mut reading).now_or_never().is_none());
    bench.time.advance(BUDGET);
    assert_eq!(reading.await.unwrap_err().kind(), StoreErrorKind::TimedOut);
    assert_eq!(bench.prepared(), 1);
}

#[tokio::test]
async fn the_server_is_looked_at_once_and_again_after_an_outage() {
    let bench = Bench::new(Mood::Well);
    for _ in 0..3 {
        assert_eq!(bench.kind().await, None);
    }
    assert_eq!(bench.prepared(), 1);
    bench.feels(Mood::Fails(StoreErrorKind::Rejected));
    assert_eq!(bench.kind().await, Some(StoreErrorKind::Rejected));
    bench.feels(Mood::Well);
    assert_eq!(bench.kind().await, None);
    assert_eq!(bench.prepared(), 1, "a refusal is an answer");
    bench.feels(Mood::Fails(StoreErrorKind::Unreachable));
    assert_eq!(bench.kind().await, Some(StoreErrorKind::Unreachable));
    bench.feels(Mood::Well);
    for _ in 0..3 {
        assert_eq!(bench.kind().await, None);
    }
    assert_eq!(bench.prepared(), 2, "another server may answer now");
}

#[tokio::test]
async fn a_store_that_will_never_do_is_not_asked_by_every_request() {
    let bench = Bench::new(Mood::Fails(StoreErrorKind::Unsupported));
    for _ in 0..100 {
        assert!(bench.kind().await.is_some());
    }
    assert_eq!(bench.asked(), 3);
}

#[tokio::test]
async fn refusals_and_confusion_keep_the_breaker_closed() {
    for fault in [StoreErrorKind::Rejected, StoreErrorKind::InvalidResponse] {
        let bench = Bench::new(Mood::Well);
        assert_eq!(bench.kind().await, None);
        bench.feels(Mood::Fails(fault));
        for _ in 0..100 {
            assert_eq!(bench.kind().await, Some(fault));
        }
        bench.feels(Mood::Well);
        assert_eq!(bench.kind().await, None);
        assert_eq!(bench.shared.last_error(), None);
    }
}

#[tokio::test]
async fn every_operation_has_the_budget_and_the_breaker() {
    let bench = Bench::new(Mood::Well);
    bench.shared.prepare().await.unwrap();
    bench.feels(Mood::Silent);
    let (shared, slot, lease, write) =
        (&bench.shared, &bench.slot, LeaseId::fresh(), WriteId::fresh());
    let long = Duration::from_secs(60);
    macro_rules! gives_up {
        ($($operation:expr),* $(,)?) => {$(
            bench.time.advance(Duration::from_secs(1));
            let mut operation = Box::pin($operation);
            assert!((&mut operation).now_or_never().is_none());
            bench.time.advance(BUDGET);
            assert_eq!(operation.await.unwrap_err().kind(), StoreErrorKind::TimedOut);
        )*};
    }
    gives_up!(
        shared.get(slot),
        shared.get_or_lease(slot, lease, long),
        shared.fill(slot, lease, Entry::Null, 7, long),
        shared.release(slot, lease),
        shared.put_intent(slot, write, long),
        shared.clear_intent(slot, write),
    );
    assert!(shared.clear_intent(slot, write).await.is_err());
    assert_eq!(bench.asked(), 7);
}
