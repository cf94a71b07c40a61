//! A guard over doubles that the test controls.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::failpoints::{At, Failpoints};
use super::fake_backplane::FakeBackplane;
use super::fake_table::{FakeTable, Row};
use super::source::TestSource;
use super::store::TestStore;
use super::writer::Failure;
use super::{quiet, until};
use crate::answer::{Answer, Tier, Verdict};
use crate::clock::{Clock, ManualTime};
use crate::error::{BoxError, ReadError, WriteError};
use crate::gate::Gate;
use crate::guard::{Guard, GuardBuilder};
use crate::key::KeyBytes;
use crate::ports::{LeaseId, Loader, Slot, SlotKey};
use crate::shared_cache::SlotCalls as _;
use crate::telemetry::Status;

/// W of every guard here, and how long `run` may take of it.
pub(super) const WINDOW: Duration = Duration::from_secs(30);
pub(super) const RUN_FOR: Duration = Duration::from_secs(25);
pub(super) const VALUE_TTL: Duration = Duration::from_secs(600);
pub(super) const NULL_TTL: Duration = Duration::from_secs(60);
pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const MS: Duration = Duration::from_millis(1);

/// How the next load of an id goes wrong.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mishap {
    Error,
    Panic,
    Hang,
}

/// Reads the rows, with failpoints and mishaps.
#[derive(Clone, Debug)]
pub(super) struct TestLoader {
    table: FakeTable,
    failpoints: Failpoints,
    mishaps: Arc<Mutex<HashMap<i64, Mishap>>>,
}

impl Loader<i64, Row> for TestLoader {
    type Error = BoxError;

    async fn load(&self, id: &i64) -> Result<Option<Row>, BoxError> {
        self.failpoints.pass(At::BeforeLoad).await;
        let mishap = self.mishaps.lock().remove(id);
        match mishap {
            Some(Mishap::Error) => return Err("the database is down".into()),
            Some(Mishap::Panic) => panic!("the test says so"),
            Some(Mishap::Hang) => std::future::pending().await,
            None => {}
        }
        let row = self.table.get(*id);
        self.failpoints.pass(At::AfterLoad).await;
        Ok(row)
    }
}

type Tune = Box<dyn FnOnce(GuardBuilder<i64, Row>) -> GuardBuilder<i64, Row>>;

/// The settings of a harness.
pub(super) struct HarnessBuilder {
    table: FakeTable,
    gate: Gate,
    shared: bool,
    ready: bool,
    tune: Tune,
}

impl HarnessBuilder {
    /// With a shared cache.
    pub(super) fn shared(mut self) -> Self {
        self.shared = true;
        self
    }

    /// With a shared cache, or without.
    pub(super) fn shared_if(mut self, shared: bool) -> Self {
        self.shared = shared;
        self
    }

    /// With a gate that passes everything.
    pub(super) fn open_gate(mut self) -> Self {
        self.gate = Gate::open();
        self
    }

    pub(super) fn tune(
        mut self,
        tune: impl FnOnce(GuardBuilder<i64, Row>) -> GuardBuilder<i64, Row> + 'static,
    ) -> Self {
        self.tune = Box::new(tune);
        self
    }

    /// Doesn't wait for the first warm-up.
    pub(super) fn unready(mut self) -> Self {
        self.ready = false;
        self
    }

    pub(super) async fn build(self) -> Harness {
        self.build_with(|_, _| {}).await.0
    }

    /// As `build`; `prepare` sets things up before the guard starts.
    pub(super) async fn build_with<T>(
        self,
        prepare: impl FnOnce(&Failpoints, &TestSource) -> T,
    ) -> (Harness, T) {
        let failpoints = Failpoints::default();
        let source = TestSource::new(self.table.clone(), failpoints.clone());
        let prepared = prepare(&failpoints, &source);
        let (clock, time) = Clock::manual();
        let store = self.shared.then(|| TestStore::new(clock.clone(), failpoints.clone()));
        let fake_backplane = FakeBackplane::new(failpoints.clone());
        let loader = TestLoader {
            table: self.table.clone(),
            failpoints: failpoints.clone(),
            mishaps: Arc::default(),
        };
        let described = describe(&clock, &loader, &source, store.as_ref(), &fake_backplane);
        let guard = (self.tune)(described.gate(self.gate)).build().await.unwrap();
        if self.ready {
            until("the guard is ready", || guard.is_ready()).await;
        }
        let table = self.table;
        let harness = Harness {
            guard,
            table,
            failpoints,
            source,
            store,
            fake_backplane,
            clock,
            time,
            loader,
        };
        (harness, prepared)
    }
}

fn describe(
    clock: &Clock,
    loader: &TestLoader,
    source: &TestSource,
    store: Option<&TestStore>,
    fake_backplane: &FakeBackplane,
) -> GuardBuilder<i64, Row> {
    let described = Guard::builder("harness")
        .clock(clock.clone())
        .loader(loader.clone())
        .source(source.clone())
        .backplane(fake_backplane.clone())
        .write_window(WINDOW)
        .ready_within(600 * SECOND)
        .value_ttl(VALUE_TTL)
        .null_ttl(NULL_TTL)
        .jitter(0.0);
    match store {
        Some(store) => described.store(store.clone()),
        None => described,
    }
}

/// A guard, and the doubles that it runs on.
pub(super) struct Harness {
    pub(super) guard: Guard<i64, Row>,
    pub(super) table: FakeTable,
    pub(super) failpoints: Failpoints,
    pub(super) source: TestSource,
    store: Option<TestStore>,
    pub(super) fake_backplane: FakeBackplane,
    pub(super) clock: Clock,
    pub(super) time: ManualTime,
    loader: TestLoader,
}

impl Harness {
    /// A table with these ids, a closed gate, no shared cache.
    pub(super) fn with(ids: impl IntoIterator<Item = i64>) -> HarnessBuilder {
        HarnessBuilder {
            table: FakeTable::with(ids),
            gate: Gate::bloom(),
            shared: false,
            ready: true,
            tune: Box::new(|described| described),
        }
    }

    /// The shared cache.
    pub(super) fn store(&self) -> &TestStore {
        self.store.as_ref().expect("this harness has no shared cache")
    }

    /// Another guard over the same table and the same shared cache, as another process has, with
    /// an open gate.
    pub(super) async fn peer(&self) -> Guard<i64, Row> {
        self.peer_with(|described| described).await
    }

    /// The same, of another build.
    pub(super) async fn peer_with(
        &self,
        tune: impl FnOnce(GuardBuilder<i64, Row>) -> GuardBuilder<i64, Row>,
    ) -> Guard<i64, Row> {
        let failpoints = Failpoints::default();
        let loader = TestLoader { failpoints: failpoints.clone(), ..self.loader.clone() };
        let fake_backplane = FakeBackplane::new(failpoints);
        let store = self.store.as_ref();
        let described = describe(&self.clock, &loader, &self.source, store, &fake_backplane);
        tune(described.gate(Gate::open())).build().await.unwrap()
    }

    pub(super) fn mishap(&self, id: i64, mishap: Mishap) {
        self.loader.mishaps.lock().insert(id, mishap);
    }

    pub(super) fn status(&self) -> Status {
        self.guard.status()
    }

    /// Queries begun so far.
    pub(super) fn loads(&self) -> u64 {
        self.status().counts.loader.loads
    }

    pub(super) fn open_writes(&self) -> u64 {
        self.status().in_flight.writes
    }

    pub(super) async fn get(&self, id: i64) -> Result<Answer<Row>, ReadError> {
        super::within(self.guard.get(&id)).await
    }

    /// The same, while the clock goes on.
    pub(super) async fn get_with_time(&self, id: i64) -> Result<Answer<Row>, ReadError> {
        let reader = self.spawn_get(id);
        while !reader.is_finished() {
            self.pass(SECOND).await;
        }
        reader.await.unwrap()
    }

    /// The version of the row and the tier that answered; `None` without a row.
    pub(super) async fn seen(&self, id: i64) -> (Option<usize>, Tier) {
        seen(self.get(id).await.unwrap())
    }

    /// A request in a task of its own.
    pub(super) fn spawn_get(&self, id: i64) -> JoinHandle<Result<Answer<Row>, ReadError>> {
        let guard = self.guard.clone();
        tokio::spawn(async move { guard.get(&id).await })
    }

    /// Inserts or overwrites a row through the guard.
    pub(super) async fn write(&self, id: i64) -> Result<(), WriteError<Failure>> {
        let table = self.table.clone();
        super::within(self.guard.write(id, async move {
            table.commit(id);
            Ok(())
        }))
        .await
    }

    /// True if the gate refuses the id.
    pub(super) fn refuses(&self, id: i64) -> bool {
        self.guard.check(&id) == Verdict::Absent
    }

    pub(super) fn slot(&self, id: i64) -> SlotKey {
        self.guard.0.slots.of(&KeyBytes::of(&id))
    }

    /// The slot in the shared cache, as another process sees it.
    pub(super) async fn shared_slot(&self, id: i64) -> Slot {
        let slot = self.slot(id);
        self.store().memory().get(&slot).await.unwrap()
    }

    /// Reads or leases the slot, as another process does.
    pub(super) async fn take_lease(&self, id: i64, lease: LeaseId) -> Slot {
        let slot = self.slot(id);
        self.store().memory().get_or_lease(&slot, lease, 10 * SECOND).await.unwrap()
    }

    /// Moves the clock; before and after, every task runs until it waits.
    pub(super) async fn pass(&self, by: Duration) {
        quiet().await;
        self.time.advance(by);
        quiet().await;
    }

    /// Moves the clock past the write window and every lease, and checks that nothing is left of
    /// requests and writes.
    pub(super) async fn is_tidy(&self) {
        self.pass(WINDOW + 2 * SECOND).await;
        let status = self.status();
        assert_eq!((status.in_flight.loads, status.in_flight.writes), (0, 0), "left under way");
        assert_eq!(self.guard.0.running_writes.borrow().running, 0, "a write's task is left");
        if let Some(store) = &self.store {
            // Nothing but an entry lives longer than a write or a lease.
            self.time.advance(VALUE_TTL.max(NULL_TTL));
            assert!(store.memory().is_empty(), "something in the shared cache doesn't expire");
        }
    }
}

/// The version of the row and the tier that answered; `None` without a row.
pub(super) fn seen(answer: Answer<Row>) -> (Option<usize>, Tier) {
    match answer {
        Answer::Found { value, tier, .. } => (Some(value.version), tier),
        Answer::Absent(tier) => (None, tier),
    }
}
