//! A store, in memory unless the test says otherwise, with stops before and after each step and
//! with outages.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::stops::{At, Stops};
use crate::clock::Clock;
use crate::error::{StoreError, StoreFault};
use crate::ports::{Entry, Filled, Neighbour, Slot, SlotKey, Store, Token};
use crate::shared_cache::MemoryStore;

/// What fails.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// Everything.
    pub(super) down: bool,
    /// Nothing is answered.
    pub(super) silent: bool,
    pub(super) no_marks: bool,
    pub(super) no_unmarks: bool,
    pub(super) no_fills: bool,
    pub(super) unsupported: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct TestStore {
    inner: Arc<dyn Store>,
    memory: Option<Arc<MemoryStore>>,
    stops: Stops,
    faults: Arc<Mutex<Faults>>,
}

impl TestStore {
    pub(super) fn new(clock: Clock, stops: Stops) -> Self {
        let memory = Arc::new(MemoryStore::new(clock));
        Self { memory: Some(Arc::clone(&memory)), ..Self::over(memory, stops) }
    }

    /// Around any other store.
    pub(super) fn over(inner: Arc<dyn Store>, stops: Stops) -> Self {
        Self { inner, memory: None, stops, faults: Arc::default() }
    }

    pub(super) fn memory(&self) -> &MemoryStore {
        self.memory.as_deref().expect("a store in memory")
    }

    pub(super) fn faults(&self, faults: Faults) {
        *self.faults.lock() = faults;
    }

    async fn healthy(&self, refused: impl Fn(&Faults) -> bool) -> Result<(), StoreError> {
        let faults = *self.faults.lock();
        if faults.silent {
            std::future::pending::<()>().await;
        }
        let fault = match faults {
            Faults { down: true, .. } => StoreFault::Unreachable,
            Faults { unsupported, .. } if unsupported => StoreFault::Unsupported,
            faults if refused(&faults) => StoreFault::Refused,
            _ => return Ok(()),
        };
        Err(StoreError::new(fault, "the test says so"))
    }
}

impl Store for TestStore {
    fn prepare(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.healthy(|_| false).await?;
            self.inner.prepare().await
        })
    }

    fn get_or_lease<'a>(
        &'a self,
        slot: &'a SlotKey,
        lease: Token,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Slot, StoreError>> {
        Box::pin(async move {
            self.stops.pass(At::BeforeRead).await;
            self.healthy(|_| false).await?;
            let found = self.inner.get_or_lease(slot, lease, ttl).await;
            self.stops.pass(At::AfterRead).await;
            found
        })
    }

    fn get<'a>(&'a self, slot: &'a SlotKey) -> BoxFuture<'a, Result<Slot, StoreError>> {
        Box::pin(async move {
            self.stops.pass(At::BeforeRead).await;
            self.healthy(|_| false).await?;
            let found = self.inner.get(slot).await;
            self.stops.pass(At::AfterRead).await;
            found
        })
    }

    fn fill<'a>(
        &'a self,
        slot: &'a SlotKey,
        lease: Token,
        entry: Entry,
        until: u64,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Filled, StoreError>> {
        Box::pin(async move {
            self.stops.pass(At::BeforeFill).await;
            self.healthy(|faults| faults.no_fills).await?;
            let filled = self.inner.fill(slot, lease, entry, until, ttl).await;
            self.stops.pass(At::AfterFill).await;
            filled
        })
    }

    fn release<'a>(
        &'a self,
        slot: &'a SlotKey,
        lease: Token,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.stops.pass(At::BeforeRelease).await;
            self.healthy(|_| false).await?;
            self.inner.release(slot, lease).await
        })
    }

    fn mark<'a>(
        &'a self,
        slot: &'a SlotKey,
        write: Token,
        lives: Duration,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.stops.pass(At::BeforeMark).await;
            self.healthy(|faults| faults.no_marks).await?;
            let marked = self.inner.mark(slot, write, lives).await;
            self.stops.pass(At::AfterMark).await;
            marked
        })
    }

    fn unmark<'a>(
        &'a self,
        slot: &'a SlotKey,
        write: Token,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.stops.pass(At::BeforeUnmark).await;
            self.healthy(|faults| faults.no_unmarks).await?;
            let unmarked = self.inner.unmark(slot, write).await;
            self.stops.pass(At::AfterUnmark).await;
            unmarked
        })
    }

    fn beat<'a>(
        &'a self,
        namespace: &'a str,
        member: Token,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Vec<Neighbour>, StoreError>> {
        Box::pin(async move {
            self.healthy(|_| false).await?;
            self.inner.beat(namespace, member, ttl).await
        })
    }

    fn leave<'a>(
        &'a self,
        namespace: &'a str,
        member: Token,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.healthy(|_| false).await?;
            self.inner.leave(namespace, member).await
        })
    }
}
