//! Describes a guard, and starts it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bloomgate_filter::Secret;
use futures_util::FutureExt as _;
use tokio::sync::watch;

use super::near::Near;
use super::rebuild::{self, RebuildRequests};
use super::settings::{OnUnmarked, Settings};
use super::unmarked::Unmarked;
use super::{Background, Guard, Inner, Value};
use crate::backplane::Alone;
use crate::clock::Clock;
use crate::error::{Error, StoreFault};
use crate::flight::Flights;
use crate::gate::{Gate, LiveGate, OpenWrites};
use crate::key::Key;
use crate::loader::{Bulkhead, BulkheadLimits, DynLoader, LimitedLoader, erase};
use crate::local_cache::LocalLimits;
use crate::ports::{Backplane, Loader, Source, Store};
use crate::shared_cache::{SharedCache, slot_prefix};
use crate::telemetry::Counts;
use crate::warm_up::Progress;

/// Flights under way at a time, and waiters for the bulkhead: far more than a service that isn't
/// drowning has, few enough to keep memory bounded.
pub(super) const MOST_FLIGHTS: usize = 16_384;
/// Open writes at a time.
pub(super) const MOST_WRITES: usize = 10_000;
/// What a lease lives longer than the waits it must outlive.
const LEASE_MARGIN: Duration = Duration::from_millis(500);

/// Describes a guard; see [`Guard::builder`]. A source and a loader are required, all else has a
/// default.
#[must_use]
pub struct Builder<K, V> {
    name: String,
    schema: String,
    gate: Gate,
    secret: Option<Secret>,
    source: Option<Arc<dyn Source>>,
    loader: Option<Arc<dyn DynLoader<K, V>>>,
    store: Option<Arc<dyn Store>>,
    backplane: Option<Arc<dyn Backplane>>,
    clock: Clock,
    value_ttl: Duration,
    null_ttl: Duration,
    jitter: f64,
    store_budget: Duration,
    load_timeout: Duration,
    queue_timeout: Duration,
    lease_ttl: Option<Duration>,
    write_window: Duration,
    loads: usize,
    unlikely_loads: Option<usize>,
    on_unmarked: OnUnmarked,
    stale_for: Duration,
    local_values: u64,
    local_nulls: u64,
}

impl<K, V> fmt::Debug for Builder<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<K: Key, V: Value> Builder<K, V> {
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
            store_budget: Duration::from_millis(100),
            load_timeout: Duration::from_secs(2),
            queue_timeout: Duration::from_millis(250),
            lease_ttl: None,
            write_window: Duration::from_secs(30),
            loads: 32,
            unlikely_loads: None,
            on_unmarked: OnUnmarked::default(),
            stale_for: Duration::from_secs(60 * 60),
            local_values: 10_000,
            local_nulls: 100_000,
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

    /// What keeps several instances in step. Default: [`Alone`].
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
    pub fn store_budget(mut self, budget: Duration) -> Self {
        self.store_budget = budget;
        self
    }

    /// Longest wait for one load, once it has a place: 1 ms to 10 min. Default: 2 s. Give the
    /// database's pool an `acquire_timeout` below it.
    pub fn load_timeout(mut self, timeout: Duration) -> Self {
        self.load_timeout = timeout;
        self
    }

    /// Longest wait for a place among the loads: 0 to 10 min. Default: 250 ms. Past it a request
    /// fails with [`Error::Shed`].
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
    pub fn loads(mut self, places: usize) -> Self {
        self.loads = places;
        self
    }

    /// Of these, how many for ids that were never seen to exist, which an open gate passes.
    /// Default: a quarter, at least 1.
    pub fn unlikely_loads(mut self, places: usize) -> Self {
        self.unlikely_loads = Some(places);
        self
    }

    /// What a write does when the shared cache can't take its mark. Default: it fails.
    pub fn on_unmarked(mut self, policy: OnUnmarked) -> Self {
        self.on_unmarked = policy;
        self
    }

    /// How long past its time to live a row may still be served, marked stale, while the database
    /// fails. Default: 1 h; zero for never.
    pub fn stale_for(mut self, duration: Duration) -> Self {
        self.stale_for = duration;
        self
    }

    /// Rows that the local cache holds at most. Default: 10,000.
    pub fn local_values(mut self, rows: u64) -> Self {
        self.local_values = rows;
        self
    }

    /// Sentinels that the local cache holds at most, in a budget of their own. Default: 100,000.
    pub fn local_nulls(mut self, sentinels: u64) -> Self {
        self.local_nulls = sentinels;
        self
    }

    /// Starts the guard. It passes everything until its first warm-up has succeeded; a database or
    /// a shared cache that is down is tried again for as long as it takes.
    ///
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When a setting is nonsense, or the shared cache says that it will never do (a Redis older
    /// than 7.0).
    pub async fn build(self) -> Result<Guard<K, V>, Error> {
        let settings = self.settings()?;
        let missing = |field| Error::config(field, "not given", "it is required");
        let source = self.source.ok_or_else(|| missing("source"))?;
        let loader = self.loader.ok_or_else(|| missing("loader"))?;
        let secret = match self.secret {
            Some(secret) => secret,
            None => Secret::generate().map_err(|error| Error::Filter(error.into()))?,
        };
        let clock = self.clock;
        let started = clock.now();
        let counts = Arc::new(Counts::default());
        let shared = self.store.as_ref().map(|store| {
            let (store, counts) = (Arc::clone(store), Arc::clone(&counts.shared));
            Arc::new(SharedCache::new(store, settings.store_budget, clock.clone(), counts))
        });
        if let Some(shared) = &shared
            && let Err(error) = shared.prepare().await
        {
            if error.fault() == StoreFault::Unsupported {
                return Err(Error::Store(Arc::new(error)));
            }
            tracing::warn!(%error, "the shared cache can't be reached; going on without it");
        }
        let backplane: Arc<dyn Backplane> = match (self.backplane, &self.store) {
            (Some(backplane), _) => backplane,
            (None, Some(store)) => {
                let (store, clock) = (Arc::clone(store), clock.clone());
                let (window, budget) = (settings.write_window, settings.store_budget);
                Arc::new(Alone::watching(store, &self.name, window, budget, clock))
            }
            (None, None) => Arc::new(Alone::without_store()),
        };

        let forced_open = settings.gate.forced_open;
        let open_writes = OpenWrites::new(MOST_WRITES);
        let gate = Arc::new(LiveGate::new(settings.gate.hash, secret, forced_open, open_writes));
        let limits = LocalLimits {
            values: settings.local_values,
            nulls: settings.local_nulls,
            stale_for: settings.stale_for,
        };
        let near =
            Arc::new(Near::new(Arc::clone(&gate), limits, clock.clone(), Arc::clone(&counts)));
        let bulkhead = BulkheadLimits {
            places: settings.places,
            unlikely: settings.unlikely_places,
            queue: settings.queue_timeout,
            waiters: MOST_FLIGHTS,
        };
        let loader = LimitedLoader::new(
            loader,
            Bulkhead::new(bulkhead, clock.clone()),
            settings.load_timeout,
            clock.clone(),
            Arc::clone(&counts.loader),
        );
        let progress = Arc::new(Progress::default());
        let (rebuilds, requests) = RebuildRequests::channel();
        let standing =
            rebuild::follow_standing(backplane.standing(), Arc::clone(&gate), Arc::clone(&near));
        let mut background = vec![Background(tokio::spawn(standing))];
        let (settled, settled_at_start) = watch::channel(false);
        let mut settling = Box::pin(rebuild::settle_at_start(
            Arc::clone(&source),
            Arc::clone(&near),
            started,
            settings.write_window,
            Arc::clone(&progress),
            clock.clone(),
            settled,
        ));
        // A source that nobody else writes to is settled at once.
        if (&mut settling).now_or_never().is_none() {
            background.push(Background(tokio::spawn(settling)));
        }
        if !forced_open {
            let builder = rebuild::Builder {
                gate: Arc::clone(&gate),
                settings: settings.gate,
                source,
                standing: backplane.standing(),
                requests,
                progress: Arc::clone(&progress),
                clock: clock.clone(),
                settled_at_start,
                write_window: settings.write_window,
            };
            background.push(Background(tokio::spawn(builder.run())));
        }
        Ok(Guard(Arc::new(Inner {
            slot_prefix: slot_prefix(&self.name, &self.schema),
            name: self.name.into(),
            settings,
            gate,
            near,
            flights: Arc::new(Flights::new(MOST_FLIGHTS)),
            shared,
            unmarked: Unmarked::new(clock.clone()),
            loader,
            backplane,
            clock,
            counts,
            progress,
            rebuilds,
            running_writes: watch::Sender::new(0),
            _background: background,
        })))
    }

    fn settings(&self) -> Result<Settings, Error> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(plain) {
            let problem = format!("{:?} can't be a namespace", self.name);
            let fix = "give 1 to 64 of a-z, 0-9, '-', '_', '.'";
            return Err(Error::config("builder(name)", problem, fix));
        }
        let mut settings = Settings {
            gate: self.gate.check()?,
            value_ttl: self.value_ttl,
            null_ttl: self.null_ttl,
            jitter: self.jitter,
            store_budget: self.store_budget,
            load_timeout: self.load_timeout,
            queue_timeout: self.queue_timeout,
            lease_ttl: Duration::ZERO,
            write_window: self.write_window,
            places: self.loads,
            unlikely_places: self.unlikely_loads.unwrap_or((self.loads / 4).max(1)),
            on_unmarked: self.on_unmarked,
            stale_for: self.stale_for,
            local_values: self.local_values,
            local_nulls: self.local_nulls,
        };
        let default_lease = settings.longest_fill().saturating_add(LEASE_MARGIN);
        settings.lease_ttl = self.lease_ttl.unwrap_or(default_lease);
        settings.check()?;
        Ok(settings)
    }
}
