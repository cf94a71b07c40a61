//! A store with failpoints around each operation, and with outages.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::failpoints::{At, Failpoints};
use crate::clock::Clock;
use crate::error::{StoreError, StoreErrorKind};
use crate::ports::{ClearStep, SlotKey, SlotOp, SlotReply, Store};
use crate::shared_cache::MemoryStore;

/// The failures of a store.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// Every call fails.
    pub(super) down: bool,
    /// No call is answered.
    pub(super) silent: bool,
    pub(super) no_put_intent: bool,
    pub(super) no_clear_intent: bool,
    pub(super) no_fill: bool,
    pub(super) unsupported: bool,
}

/// A store, in memory unless the test gives another.
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

    fn endpoint(&self) -> String {
        self.inner.endpoint()
    }

    fn call<'a>(
        &'a self,
        slot: &'a SlotKey,
        op: SlotOp,
    ) -> BoxFuture<'a, Result<SlotReply, StoreError>> {
        Box::pin(async move {
            let (before, after) = match op {
                SlotOp::Get | SlotOp::GetOrLease { .. } => (At::BeforeRead, Some(At::AfterRead)),
                SlotOp::Fill { .. } => (At::BeforeFill, Some(At::AfterFill)),
                SlotOp::Release { .. } => (At::BeforeRelease, None),
                SlotOp::PutIntent { .. } => (At::BeforePutIntent, Some(At::AfterPutIntent)),
                SlotOp::ClearIntent { .. } => (At::BeforeClearIntent, Some(At::AfterClearIntent)),
            };
            self.failpoints.pass(before).await;
            self.healthy(|faults| match op {
                SlotOp::Fill { .. } => faults.no_fill,
                SlotOp::PutIntent { .. } => faults.no_put_intent,
                SlotOp::ClearIntent { .. } => faults.no_clear_intent,
                _ => false,
            })
            .await?;
            let reply = self.inner.call(slot, op).await;
            if let Some(after) = after {
                self.failpoints.pass(after).await;
            }
            reply
        })
    }

    fn clear_step<'a>(
        &'a self,
        prefix: &'a str,
        from: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ClearStep, StoreError>> {
        Box::pin(async move {
            self.healthy(|_| false).await?;
            self.inner.clear_step(prefix, from).await
        })
    }
}
