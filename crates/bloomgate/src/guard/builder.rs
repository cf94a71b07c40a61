//! Describes a guard.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bloomgate_filter::Secret;

use super::Value;
use super::settings::OnStoreFailure;
use crate::clock::Clock;
use crate::gate::Gate;
use crate::key::Key;
use crate::loader::{DynLoader, erase};
use crate::ports::{Backplane, Loader, Source, Store};

/// Describes a guard; see [`Guard::builder`](super::Guard::builder). A source and a loader are required, all else has a
/// default.
#[must_use]
pub struct GuardBuilder<K, V> {
    pub(super) name: String,
    pub(super) schema: String,
    pub(super) gate: Gate,
    pub(super) secret: Option<Secret>,
    pub(super) source: Option<Arc<dyn Source>>,
    pub(super) loader: Option<Arc<dyn DynLoader<K, V>>>,
    pub(super) store: Option<Arc<dyn Store>>,
    pub(super) backplane: Option<Arc<dyn Backplane>>,
    pub(super) clock: Clock,
    pub(super) value_ttl: Duration,
    pub(super) null_ttl: Duration,
    pub(super) jitter: f64,
    pub(super) store_timeout: Duration,
    pub(super) load_timeout: Duration,
    pub(super) queue_timeout: Duration,
    pub(super) lease_ttl: Option<Duration>,
    pub(super) write_window: Duration,
    pub(super) max_concurrent_loads: usize,
    pub(super) max_unseen_loads: Option<usize>,
    pub(super) on_store_failure: OnStoreFailure,
    pub(super) stale_if_error: Duration,
    pub(super) local_value_capacity: u64,
    pub(super) local_null_capacity: u64,
}

impl<K, V> fmt::Debug for GuardBuilder<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<K: Key, V: Value> GuardBuilder<K, V> {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            schema: std::any::type_name::<V>().to_owned(),
            gate: Gate::bloom(),
            secret: None,
            source: None,
            loader: None,
            store: None,
            backplane: None,
            clock: Clock::system(),
            value_ttl: Duration::from_secs(30 * 60),
            null_ttl: Duration::from_secs(30),
            jitter: 0.1,
            store_timeout: Duration::from_millis(100),
            load_timeout: Duration::from_secs(2),
            queue_timeout: Duration::from_millis(250),
            lease_ttl: None,
            write_window: Duration::from_secs(30),
            max_concurrent_loads: 32,
            max_unseen_loads: None,
            on_store_failure: OnStoreFailure::default(),
            stale_if_error: Duration::from_secs(60 * 60),
            local_value_capacity: 10_000,
            local_null_capacity: 100_000,
        }
    }

    /// The gate. Default: [`Gate::bloom`].
    pub fn gate(mut self, gate: Gate) -> Self {
        self.gate = gate;
        self
    }

    /// The secret that the gate's hash is keyed with. Default: a fresh one for each process, which
    /// is right for a single instance.
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Where the existing ids come from. Required.
    pub fn source(mut self, source: impl Source) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Asks the database for one row. Required.
    pub fn loader(mut self, loader: impl Loader<K, V>) -> Self {
        self.loader = Some(erase(loader));
        self
    }

    /// The cache that all processes share. Default: none, the local cache only.
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// What keeps several instances in step. Default: [`Alone`](crate::backplane::Alone).
    pub fn backplane(mut self, backplane: impl Backplane) -> Self {
        self.backplane = Some(Arc::new(backplane));
        self
    }

    /// The clock. Default: the system's.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Names the shape of the values in the shared cache. Two builds that understand each other's
    /// JSON give the same name; a build whose type has changed must give another one. Default: the
    /// type's name.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// How long a row is cached: 1 ms to 366 days. Default: 30 min. Chance takes off up to
    /// [`jitter`](Self::jitter).
    pub fn value_ttl(mut self, ttl: Duration) -> Self {
        self.value_ttl = ttl;
        self
    }

    /// How long a sentinel is cached: 1 ms to 366 days, never lengthened by chance. Default: 30 s.
    pub fn null_ttl(mut self, ttl: Duration) -> Self {
        self.null_ttl = ttl;
        self
    }

    /// Share of a time to live that chance takes off at most, so that what was cached together
    /// doesn't expire together: 0 ≤ jitter < 1. Default: 0.1.
    pub fn jitter(mut self, share: f64) -> Self {
        self.jitter = share;
        self
    }

    /// Longest wait for one operation of the shared cache: 1 ms to 60 s. Default: 100 ms.
    pub fn store_timeout(mut self, budget: Duration) -> Self {
        self.store_timeout = budget;
        self
    }

    /// Longest wait for one load, once it has a place: 1 ms to 10 min. Default: 2 s. Give the
    /// database's pool an `acquire_timeout` below it.
    pub fn load_timeout(mut self, timeout: Duration) -> Self {
        self.load_timeout = timeout;
        self
    }

    /// Longest wait for a place among the loads: 0 to 10 min. Default: 250 ms. Past it a request
    /// fails with [`Error::Shed`](crate::Error::Shed).
    pub fn queue_timeout(mut self, timeout: Duration) -> Self {
        self.queue_timeout = timeout;
        self
    }

    /// How long a lease on a slot of the shared cache lives. At least the sum of the waits that it
    /// must outlive, which is the default, and half a second more.
    pub fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.lease_ttl = Some(ttl);
        self
    }

    /// The longest that a write may be open, W: 1 s to 10 min. Default: 30 s. `run` is cut off 5 s
    /// earlier (a quarter of W earlier, if W is below 20 s). The database's own statement time-out
    /// must be shorter still.
    pub fn write_window(mut self, window: Duration) -> Self {
        self.write_window = window;
        self
    }

    /// Loads at a time, at least 1. Default: 32. Keep it below the number of the pool's
    /// connections, so that writes find one.
    pub fn max_concurrent_loads(mut self, permits: usize) -> Self {
        self.max_concurrent_loads = permits;
        self
    }

    /// Of these, how many for ids that were never seen to exist, which an open gate passes.
    /// Default: a quarter, at least 1.
    pub fn max_unseen_loads(mut self, permits: usize) -> Self {
        self.max_unseen_loads = Some(permits);
        self
    }

    /// What a write does when the shared cache can't take its write intent. Default: it fails.
    pub fn on_store_failure(mut self, policy: OnStoreFailure) -> Self {
        self.on_store_failure = policy;
        self
    }

    /// How long past its time to live a row may still be served, marked stale, while the database
    /// fails. Default: 1 h; zero for never.
    pub fn stale_if_error(mut self, duration: Duration) -> Self {
        self.stale_if_error = duration;
        self
    }

    /// FakeTable that the local cache holds at most. Default: 10,000.
    pub fn local_value_capacity(mut self, rows: u64) -> Self {
        self.local_value_capacity = rows;
        self
    }

    /// Sentinels that the local cache holds at most, in a budget of their own. Default: 100,000.
    pub fn local_null_capacity(mut self, sentinels: u64) -> Self {
        self.local_null_capacity = sentinels;
        self
    }
}
