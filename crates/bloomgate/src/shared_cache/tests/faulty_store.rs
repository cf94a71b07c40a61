//! A store that fails as a test says, with the shared cache over it on a manual clock.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, pending};
use parking_lot::Mutex;

use super::super::{MemoryStore, SharedCache};
use super::store_fixture::fresh_prefix;
use crate::clock::{Clock, ManualTime};
use crate::error::{StoreError, StoreErrorKind};
use crate::key::KeyBytes;
use crate::ports::{ClearStep, SlotKey, SlotOp, SlotReply, Store};
use crate::telemetry::SharedCounts;

/// The budget of each operation.
pub(super) const BUDGET: Duration = Duration::from_millis(100);
/// How long a step of a clearing takes.
pub(super) const CLEAR_STEP: Duration = Duration::from_millis(60);

/// How calls end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Behaviour {
    Healthy,
    /// No reply ever comes.
    Silent,
    Fails(StoreErrorKind),
}

/// A store in memory whose replies fail.
#[derive(Debug)]
pub(super) struct FaultyStore {
    store: MemoryStore,
    clock: Clock,
    behaviour: Mutex<Behaviour>,
    prepared: Mutex<u32>,
    calls: Mutex<u32>,
}

impl FaultyStore {
    fn run<'a, T: Send + 'a>(
        &'a self,
        healthy: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            *self.calls.lock() += 1;
            let behaviour = *self.behaviour.lock();
            match behaviour {
                Behaviour::Healthy => healthy.await,
                Behaviour::Silent => pending().await,
                Behaviour::Fails(kind) => Err(StoreError::new(kind, format!("{kind:?}"))),
            }
        })
    }
}

impl Store for FaultyStore {
    fn prepare(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            *self.prepared.lock() += 1;
            self.run(self.store.prepare()).await
        })
    }

    fn endpoint(&self) -> String {
        "cache.example:6379".to_owned()
    }

    fn call<'a>(
        &'a self,
        slot: &'a SlotKey,
        op: SlotOp,
    ) -> BoxFuture<'a, Result<SlotReply, StoreError>> {
        self.run(self.store.call(slot, op))
    }

    /// Three steps, of which the last removes everything.
    fn clear_step<'a>(
        &'a self,
        prefix: &'a str,
        from: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ClearStep, StoreError>> {
        self.run(Box::pin(async move {
            self.clock.sleep(CLEAR_STEP).await;
            match from {
                None => Ok(ClearStep::new(0, Some("second".to_owned()))),
                Some("second") => Ok(ClearStep::new(0, Some("third".to_owned()))),
                Some("third") => self.store.clear_step(prefix, None).await,
                Some(other) => panic!("a step from {other}"),
            }
        }))
    }
}

/// The shared cache over a [`FaultyStore`].
pub(super) struct Bench {
    faulty: Arc<FaultyStore>,
    pub(super) shared: SharedCache,
    pub(super) counts: Arc<SharedCounts>,
    pub(super) time: ManualTime,
    pub(super) slot: SlotKey,
}

impl Bench {
    pub(super) fn new(behaviour: Behaviour) -> Self {
        let (clock, time) = Clock::manual();
        let counts = Arc::new(SharedCounts::default());
        let faulty = Arc::new(FaultyStore {
            store: MemoryStore::new(clock.clone()),
            clock: clock.clone(),
            behaviour: Mutex::new(behaviour),
            prepared: Mutex::new(0),
            calls: Mutex::new(0),
        });
        let store = Arc::clone(&faulty) as Arc<dyn Store>;
        Self {
            shared: SharedCache::new("products".into(), store, BUDGET, clock, Arc::clone(&counts)),
            faulty,
            counts,
            time,
            slot: SlotKey::new(fresh_prefix(), 1, KeyBytes::of(&1_i64)),
        }
    }

    pub(super) fn set(&self, behaviour: Behaviour) {
        *self.faulty.behaviour.lock() = behaviour;
    }

    /// Number of calls that reached the store.
    pub(super) fn calls(&self) -> u32 {
        *self.faulty.calls.lock()
    }

    /// Number of preparations that reached the store.
    pub(super) fn prepared(&self) -> u32 {
        *self.faulty.prepared.lock()
    }

    /// The error of a read that needs no time; `None` if it succeeds.
    pub(super) async fn read_error(&self) -> Option<StoreErrorKind> {
        let read = self.shared.get(&self.slot).await;
        read.err().map(|error| error.kind())
    }
}
