//! Describes a guard.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bloomgate_filter::Secret;

use super::Value;
use super::link_choice::LinkChoice;
use super::settings::{Given, OnStoreFailure, Settings};
use crate::backplane::FleetSettings;
use crate::clock::Clock;
use crate::gate::Gate;
use crate::key::Key;
use crate::loader::{DynLoader, erase};
use crate::ports::{Backplane, Loader, Source, Store};

/// Describes a guard; see [`Guard::builder`](super::Guard::builder) and
/// [`Guard::gate_only`](super::Guard::gate_only). A source is required, and a loader unless the
/// guard is a gate alone; all else has a default.
#[must_use]
pub struct GuardBuilder<K, V> {
    pub(super) name: String,
    pub(super) schema: String,
    pub(super) gate: Gate,
    pub(super) secret: Option<Secret>,
    pub(super) source: Option<Arc<dyn Source<Key = K>>>,
    pub(super) loader: Option<Arc<dyn DynLoader<K, V>>>,
    pub(super) store: Option<Arc<dyn Store>>,
    pub(super) link: LinkChoice,
    pub(super) clock: Clock,
    pub(super) settings: Settings,
    pub(super) given: Given,
}

impl<K, V> fmt::Debug for GuardBuilder<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<K: Key, V: Value> GuardBuilder<K, V> {
    /// Asks the database for one row. Required.
    pub fn loader(mut self, loader: impl Loader<K, V>) -> Self {
        self.loader = Some(erase(loader));
        self
    }
}

impl<K: Key, V: Send + Sync + 'static> GuardBuilder<K, V> {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            schema: std::any::type_name::<V>().to_owned(),
            gate: Gate::bloom(),
            secret: None,
            source: None,
            loader: None,
            store: None,
            link: LinkChoice::default(),
            clock: Clock::system(),
            settings: Settings::default(),
            given: Given::default(),
        }
    }

    /// The gate. Default: [`Gate::bloom`].
    pub fn gate(mut self, gate: Gate) -> Self {
        self.gate = gate;
        self
    }

    /// The secret that the gate's hash is keyed with. Default: a fresh one for each process. With a
    /// common one, the members of a [`fleet`](Self::fleet) copy a Bloom gate from one another instead
    /// of reading all ids from the source at each start.
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Where the existing ids come from. Required.
    pub fn source(mut self, source: impl Source<Key = K>) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// The cache that all processes share. Default: none, the local cache only. With one, the guard
    /// is a member of a [`fleet`](Self::fleet) unless it is told otherwise.
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// What keeps several instances in step, in place of a [`fleet`](Self::fleet) of the store.
    pub fn backplane(mut self, backplane: impl Backplane) -> Self {
        self.link.backplane = Some(Arc::new(backplane));
        self
    }

    /// How the guard keeps in step with the other instances of this namespace: through a log beside
    /// the shared cache, so that each may refuse, and serve its local cache, while any of them
    /// writes. Needs a [`store`](Self::store) that keeps such a log, as `RedisStore` does. Default:
    /// [`FleetSettings::default`] with such a store; none without.
    ///
    /// A write costs one round trip more, and with several instances some more. The first start
    /// over an empty server waits for one [`write_window`](Self::write_window) with an open gate and
    /// without caches, since nobody can know what was being written before.
    pub fn fleet(mut self, settings: FleetSettings) -> Self {
        self.link.fleet = Some(settings);
        self
    }

    /// Declares that no other instance uses this namespace, now or during a rollout. The guard then
    /// keeps no link, and goes on refusing while the shared cache is away. Ids that a second
    /// instance commits would be refused, so [`build`](Self::build) refuses to start while the
    /// namespace has a live member of a fleet; after one that was killed it waits for that one's
    /// lease to end.
    pub fn single_instance(mut self) -> Self {
        self.link.single_instance = true;
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

    /// How long a row is cached: 1 ms to 366 days. Default: 30 min. Up to
    /// [`jitter`](Self::jitter) is taken off at random.
    pub fn value_ttl(mut self, ttl: Duration) -> Self {
        self.settings.value_ttl = ttl;
        self
    }

    /// How long a sentinel is cached: 1 ms to 366 days, never lengthened. Default: 30 s.
    pub fn null_ttl(mut self, ttl: Duration) -> Self {
        self.settings.null_ttl = ttl;
        self
    }

    /// Share of a time to live that is taken off at random at most, so that what was cached together
    /// doesn't expire together: 0 ≤ jitter < 1. Default: 0.1.
    pub fn jitter(mut self, share: f64) -> Self {
        self.settings.jitter = share;
        self
    }

    /// Longest wait for one operation of the shared cache: 1 ms to 60 s. Default: 100 ms.
    pub fn store_timeout(mut self, budget: Duration) -> Self {
        self.settings.store_timeout = budget;
        self
    }

    /// Longest wait for one load, once it has a place: 1 ms to 10 min. Default: 2 s. Give the
    /// database's pool an `acquire_timeout` below it.
    pub fn load_timeout(mut self, timeout: Duration) -> Self {
        self.settings.load_timeout = timeout;
        self
    }

    /// Longest wait for a place among the loads: 0 to 10 min. Default: 250 ms. Past it a request
    /// fails with [`ReadError::Shed`](crate::ReadError::Shed).
    pub fn queue_timeout(mut self, timeout: Duration) -> Self {
        self.settings.queue_timeout = timeout;
        self
    }

    /// How long a lease on a slot of the shared cache lives. At least the sum of the waits that it
    /// must outlive, which is the default, and half a second more.
    pub fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.given.lease_ttl = Some(ttl);
        self
    }

    /// The longest that a write may be open, W: 1 s to 10 min. Default: 30 s. `run` is cut off 5 s
    /// earlier (a quarter of W earlier, if W is below 20 s). The database's own statement time-out
    /// must be shorter still.
    pub fn write_window(mut self, window: Duration) -> Self {
        self.settings.write_window = window;
        self
    }

    /// How long [`is_ready`](super::Guard::is_ready) waits for the first warm-up, 0 to 10 min.
    /// Default: 30 s. After it the guard is ready with an open gate.
    pub fn ready_within(mut self, wait: Duration) -> Self {
        self.settings.ready_within = wait;
        self
    }

    /// Loads at a time, at least 1. Default: 32. Keep it below the number of the pool's
    /// connections, so that writes find one.
    pub fn max_concurrent_loads(mut self, permits: usize) -> Self {
        self.settings.max_concurrent_loads = permits;
        self
    }

    /// Of these, how many for ids that were never seen to exist, which an open gate passes.
    /// Default: a quarter, at least 1.
    pub fn max_unseen_loads(mut self, permits: usize) -> Self {
        self.given.max_unseen_loads = Some(permits);
        self
    }

    /// What a write does when the shared cache can't take its write intent. Default: it fails.
    pub fn on_store_failure(mut self, policy: OnStoreFailure) -> Self {
        self.settings.on_store_failure = policy;
        self
    }

    /// How long past its time to live a row may still be served, marked stale, while the database
    /// fails. Default: 1 h; zero for never.
    pub fn stale_if_error(mut self, duration: Duration) -> Self {
        self.settings.stale_if_error = duration;
        self
    }

    /// Rows that the local cache holds at most. Default: 10,000.
    pub fn local_value_capacity(mut self, rows: u64) -> Self {
        self.settings.local_value_capacity = rows;
        self
    }

    /// Sentinels that the local cache holds at most, in a budget of their own, and that this
    /// instance keeps in the shared cache at most. Default: 100,000.
    pub fn local_null_capacity(mut self, sentinels: u64) -> Self {
        self.settings.local_null_capacity = sentinels;
        self
    }
}
