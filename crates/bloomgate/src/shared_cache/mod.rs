//! The shared cache: any [`Store`] within a time budget, behind a circuit breaker.

mod breaker;
#[cfg(any(test, feature = "testing"))]
mod memory;
#[cfg(test)]
mod memory_fleet_log;
mod outage_log;
#[cfg(feature = "redis")]
mod redis;
mod slot_calls;
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
#[cfg(test)]
pub(crate) use memory_fleet_log::MemoryFleetLog;
use outage_log::OutageLog;
#[cfg(feature = "redis")]
pub use redis::{RedisStore, RedisUrlError};
pub(crate) use slot_calls::SlotCalls;

/// The prefix of all slots of a namespace in one epoch of its fleet. An epoch has no `:`.
#[must_use]
pub fn slot_prefix(namespace: &str, epoch: &str) -> Arc<str> {
    Arc::from(format!("bloomgate:{namespace}:{epoch}:"))
}

/// The number that stands for a schema in the slots' entries.
#[must_use]
pub fn schema_number(schema: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(schema.as_bytes())
}

/// The shared cache as the guard uses it: each operation has a budget, an outage costs a budget
/// only a few times, errors are counted, an outage's begin and end are logged.
#[derive(Debug)]
pub(crate) struct SharedCache {
    store: Arc<dyn Store>,
    breaker: Breaker,
    budget: Duration,
    clock: Clock,
    counts: Arc<SharedCounts>,
    prepared: AtomicBool,
    outages: OutageLog,
    last_error: Mutex<Option<String>>,
}

impl SharedCache {
    /// `name` is the guard's.
    pub(crate) fn new(
        name: Arc<str>,
        store: Arc<dyn Store>,
        budget: Duration,
        clock: Clock,
        counts: Arc<SharedCounts>,
    ) -> Self {
        Self {
            outages: OutageLog::new(name, store.endpoint()),
            store,
            breaker: Breaker::new(clock.clone()),
            budget,
            clock,
            counts,
            prepared: AtomicBool::new(false),
            last_error: Mutex::new(None),
        }
    }

    /// The last failure; `None` once an operation has succeeded since.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.last_error.lock().clone()
    }

    /// Checks that the server can be used.
    pub(crate) async fn prepare(&self) -> Result<(), StoreError> {
        self.run("prepare", self.budget, std::future::ready(Ok(()))).await
    }

    pub(crate) async fn get_or_lease(
        &self,
        slot: &SlotKey,
        lease: LeaseId,
        ttl: Duration,
    ) -> Result<Slot, StoreError> {
        self.run("get or lease", self.budget, self.store.get_or_lease(slot, lease, ttl)).await
    }

    pub(crate) async fn get(&self, slot: &SlotKey) -> Result<Slot, StoreError> {
        self.run("get", self.budget, self.store.get(slot)).await
    }

    pub(crate) async fn fill(
        &self,
        slot: &SlotKey,
        lease: LeaseId,
        entry: Entry,
        until: u64,
        ttl: Duration,
    ) -> Result<Filled, StoreError> {
        self.run("fill", self.budget, self.store.fill(slot, lease, entry, until, ttl)).await
    }

    pub(crate) async fn release(&self, slot: &SlotKey, lease: LeaseId) -> Result<(), StoreError> {
        self.run("release", self.budget, self.store.release(slot, lease)).await
    }

    pub(crate) async fn put_intent(
        &self,
        slot: &SlotKey,
        write: WriteId,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        self.run("put intent", self.budget, self.store.put_intent(slot, write, ttl)).await
    }

    pub(crate) async fn clear_intent(
        &self,
        slot: &SlotKey,
        write: WriteId,
    ) -> Result<(), StoreError> {
        self.run("clear intent", self.budget, self.store.clear_intent(slot, write)).await
    }

    /// Removes every entry and lease under `prefix`, but no write intents, and returns how many it
    /// removed. Each step has `step_budget`; after a failed one, some may be removed and others
    /// not: start over.
    pub(crate) async fn clear(
        &self,
        prefix: &str,
        step_budget: Duration,
    ) -> Result<u64, StoreError> {
        let (mut removed, mut from) = (0_u64, None);
        loop {
            let step = self.store.clear_step(prefix, from.as_deref());
            let step = self.run("clear", step_budget, step).await?;
            removed = removed.saturating_add(step.removed);
            from = step.next;
            if from.is_none() {
                return Ok(removed);
            }
        }
    }

    async fn run<T>(
        &self,
        what: &'static str,
        budget: Duration,
        operation: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let Some(permit) = self.breaker.enter() else {
            self.counts.errors.add();
            return Err(StoreError::new(
                StoreErrorKind::Unreachable,
                format!(
                    "{what}: skipped, because the shared cache has not answered the last calls"
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
        let began = self.clock.now();
        let result = match self.clock.timeout_at(began + budget, prepared_then).await {
            Ok(result) => result,
            Err(_elapsed) => Err(StoreError::new(
                StoreErrorKind::TimedOut,
                format!("{what}: the shared cache did not answer within {budget:?}"),
            )),
        };
        match &result {
            Ok(_) => {
                permit.succeeded();
                self.outages.answered(began, &self.clock);
                *self.last_error.lock() = None;
            }
            Err(error) => {
                self.counts.errors.add();
                if error.is_outage() || error.kind() == StoreErrorKind::Unsupported {
                    // Another server may answer next.
                    self.prepared.store(false, Ordering::Release);
                    let is_open = permit.failed();
                    self.outages.failed(error, is_open, &self.clock);
                } else {
                    permit.succeeded();
                    self.outages.answered(began, &self.clock);
                }
                *self.last_error.lock() = Some(error.to_string());
            }
        }
        result
    }
}
