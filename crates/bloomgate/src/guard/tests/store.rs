//! A store, in memory unless the test says otherwise, with failpoints before and after each step and
//! with outages.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::failpoints::{At, Failpoints};
use crate::clock::Clock;
use crate::error::{StoreError, StoreErrorKind};
use crate::ports::{Entry, Filled, InstanceId, LeaseId, Peer, Slot, SlotKey, Store, WriteId};
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
    failpoints: Failpoints,
    faults: Arc<Mutex<Faults>>,
}

impl TestStore {
    pub(super) fn new(clock: Clock, failpoints: Failpoints) -> Self {
        let memory = Arc::new(MemoryStore::new(clock));
        Self { memory: Some(Arc::clone(&memory)), ..Self::over(memory, failpoints) }
    }

    /// Around any other store.
    pub(super) fn over(inner: Arc<dyn Store>, failpoints: Failpoints) -> Self {
        Self { inner, memory: None, failpoints, faults: Arc::default() }
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
            Faults { down: true, .. } => StoreErrorKind::Unreachable,
            Faults { unsupported, .. } if unsupported => StoreErrorKind::Unsupported,
            faults if refused(&faults) => StoreErrorKind::Rejected,
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
        lease: LeaseId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Slot, StoreError>> {
        Box::pin(async move {
            self.failpoints.pass(At::BeforeRead).await;
            self.healthy(|_| false).await?;
            let found = self.inner.get_or_lease(slot, lease, ttl).await;
            self.failpoints.pass(At::AfterRead).await;
            found
        })
    }

    fn get<'a>(&'a self, slot: &'a SlotKey) -> BoxFuture<'a, Result<Slot, StoreError>> {
        Box::pin(async move {
            self.failpoints.pass(At::BeforeRead).await;
            self.healthy(|_| false).await?;
            let found = self.inner.get(slot).await;
            self.failpoints.pass(At::AfterRead).await;
            found
        })
    }

    fn fill<'a>(
        &'a self,
        slot: &'a SlotKey,
        lease: LeaseId,
        entry: Entry,
        until: u64,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Filled, StoreError>> {
        Box::pin(async move {
            self.failpoints.pass(At::BeforeFill).await;
            self.healthy(|faults| faults.no_fills).await?;
            let filled = self.inner.fill(slot, lease, entry, until, ttl).await;
            self.failpoints.pass(At::AfterFill).await;
            filled
        })
    }

    fn release<'a>(
        &'a self,
        slot: &'a SlotKey,
        lease: LeaseId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.failpoints.pass(At::BeforeRelease).await;
            self.healthy(|_| false).await?;
            self.inner.release(slot, lease).await
        })
    }

    fn put_intent<'a>(
        &'a self,
        slot: &'a SlotKey,
        write: WriteId,
        lives: Duration,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.failpoints.pass(At::BeforeMark).await;
            self.healthy(|faults| faults.no_marks).await?;
            let with_intent = self.inner.put_intent(slot, write, lives).await;
            self.failpoints.pass(At::AfterMark).await;
            with_intent
        })
    }

    fn clear_intent<'a>(
        &'a self,
        slot: &'a SlotKey,
        write: WriteId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.failpoints.pass(At::BeforeUnmark).await;
            self.healthy(|faults| faults.no_unmarks).await?;
            let without_intent = self.inner.clear_intent(slot, write).await;
            self.failpoints.pass(At::AfterUnmark).await;
            without_intent
        })
    }

    fn heartbeat<'a>(
        &'a self,
        namespace: &'a str,
        member: InstanceId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Vec<Peer>, StoreError>> {
        Box::pin(async move {
            self.healthy(|_| false).await?;
            self.inner.heartbeat(namespace, member, ttl).await
        })
    }

    fn leave<'a>(
        &'a self,
        namespace: &'a str,
        member: InstanceId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.healthy(|_| false).await?;
            self.inner.leave(namespace, member).await
        })
    }
}
