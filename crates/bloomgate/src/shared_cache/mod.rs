//! What all processes know: any [`Store`] under a budget, behind a breaker.

mod breaker;
#[cfg(feature = "redis")]
mod envelope;
#[cfg(any(test, feature = "testing"))]
mod memory;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redis")]
mod redis_link;
#[cfg(feature = "redis")]
mod scripts;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::Clock;
use crate::error::{StoreError, StoreErrorKind};
use crate::ports::{Entry, Filled, LeaseId, Slot, SlotKey, Store, WriteId};
use crate::telemetry::SharedCounts;

use breaker::Breaker;
#[cfg(any(test, feature = "testing"))]
pub use memory::MemoryStore;
#[cfg(feature = "redis")]
pub use redis::{RedisStore, RedisUrlError};

/// The prefix of all slots of a guard: the namespace and the schema of its values, so that two
/// builds with different types don't fight over an entry.
#[must_use]
pub fn slot_prefix(namespace: &str, schema: &str) -> Arc<str> {
    let id = xxhash_rust::xxh3::xxh3_64(schema.as_bytes());
    Arc::from(format!("bloomgate:{namespace}:{id:016x}:"))
}

/// The shared cache as the guard uses it: each operation has a budget, an outage costs a budget
/// only a few times, errors are counted.
#[derive(Debug)]
pub(crate) struct SharedCache {
    store: Arc<dyn Store>,
    breaker: Breaker,
    budget: Duration,
    clock: Clock,
    counts: Arc<SharedCounts>,
    prepared: AtomicBool,
    last_error: Mutex<Option<String>>,
}

impl SharedCache {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        budget: Duration,
        clock: Clock,
        counts: Arc<SharedCounts>,
    ) -> Self {
        Self {
            store,
            breaker: Breaker::new(clock.clone()),
            budget,
            clock,
            counts,
            prepared: AtomicBool::new(false),
            last_error: Mutex::new(None),
        }
    }

    /// OpenReason the shared cache can't be used now.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.last_error.lock().clone()
    }

    /// Asks the server whether it can be worked with.
    pub(crate) async fn prepare(&self) -> Result<(), StoreError> {
        self.run("prepare", std::future::ready(Ok(()))).await
    }

    pub(crate) async fn get_or_lease(
        &self,
        slot: &SlotKey,
        lease: LeaseId,
        ttl: Duration,
    ) -> Result<Slot, StoreError> {
        self.run("read", self.store.get_or_lease(slot, lease, ttl)).await
    }

    pub(crate) async fn get(&self, slot: &SlotKey) -> Result<Slot, StoreError> {
        self.run("read", self.store.get(slot)).await
    }

    pub(crate) async fn fill(
        &self,
        slot: &SlotKey,
        lease: LeaseId,
        entry: Entry,
        until: u64,
        ttl: Duration,
    ) -> Result<Filled, StoreError> {
        self.run("fill", self.store.fill(slot, lease, entry, until, ttl)).await
    }

    pub(crate) async fn release(&self, slot: &SlotKey, lease: LeaseId) -> Result<(), StoreError> {
        self.run("release", self.store.release(slot, lease)).await
    }

    pub(crate) async fn put_intent(
        &self,
        slot: &SlotKey,
        write: WriteId,
        lives: Duration,
    ) -> Result<(), StoreError> {
        self.run("intent", self.store.put_intent(slot, write, lives)).await
    }

    pub(crate) async fn clear_intent(
        &self,
        slot: &SlotKey,
        write: WriteId,
    ) -> Result<(), StoreError> {
        self.run("unmark", self.store.clear_intent(slot, write)).await
    }

    async fn run<T>(
        &self,
        what: &'static str,
        operation: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let Some(permit) = self.breaker.enter() else {
            self.counts.errors.add();
            return Err(StoreError::new(
                StoreErrorKind::Unreachable,
                format!(
                    "{what}: the shared cache did not answer lately and is not asked for a moment"
                ),
            ));
        };
        let prepared_then = async {
            if !self.prepared.load(Ordering::Acquire) {
                self.store.prepare().await?;
                self.prepared.store(true, Ordering::Release);
            }
            operation.await
        };
        let result = match self.clock.timeout(self.budget, prepared_then).await {
            Ok(result) => result,
            Err(_elapsed) => Err(StoreError::new(
                StoreErrorKind::TimedOut,
                format!("{what}: the shared cache did not answer within {:?}", self.budget),
            )),
        };
        match &result {
            Ok(_) => {
                permit.succeeded();
                *self.last_error.lock() = None;
            }
            Err(error) => {
                self.counts.errors.add();
                if error.is_outage() || error.kind() == StoreErrorKind::Unsupported {
                    // Who answers next may be another server.
                    self.prepared.store(false, Ordering::Release);
                    permit.failed()
                } else {
                    permit.succeeded()
                }
                *self.last_error.lock() = Some(error.to_string());
            }
        }
        result
    }
}
