//! Starts a guard from its description.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bloomgate_filter::Secret;
use futures_util::FutureExt as _;
use tokio::sync::watch;

use super::builder::GuardBuilder;
use super::local_view::LocalView;
use super::rebuild::{self, RebuildRequests};
use super::settings::Settings;
use super::shared_cache_bypass::SharedCacheBypass;
use super::{AbortOnDrop, Guard, Inner, Value};
use crate::backplane::Alone;
use crate::error::{Error, StoreErrorKind};
use crate::flight::Flights;
use crate::gate::{LiveGate, OpenWrites};
use crate::key::Key;
use crate::loader::{Bulkhead, BulkheadLimits, LimitedLoader};
use crate::local_cache::LocalLimits;
use crate::ports::Backplane;
use crate::shared_cache::{SharedCache, slot_prefix};
use crate::telemetry::Counts;
use crate::warm_up::Progress;

/// Flights under way at a time, and waiters for the bulkhead: far more than a service that isn't
/// drowning has, few enough to keep memory bounded.
pub(super) const MAX_FLIGHTS: usize = 16_384;
/// Open writes at a time.
pub(super) const MAX_WRITES: usize = 10_000;
/// What a lease lives longer than the waits it must outlive.
const LEASE_MARGIN: Duration = Duration::from_millis(500);

impl<K: Key, V: Value> GuardBuilder<K, V> {
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
            Arc::new(SharedCache::new(store, settings.store_timeout, clock.clone(), counts))
        });
        if let Some(shared) = &shared
            && let Err(error) = shared.prepare().await
        {
            if error.kind() == StoreErrorKind::Unsupported {
                return Err(Error::Store(Arc::new(error)));
            }
            tracing::warn!(%error, "the shared cache can't be reached; going on without it");
        }
        let backplane: Arc<dyn Backplane> = match (self.backplane, &self.store) {
            (Some(backplane), _) => backplane,
            (None, Some(store)) => {
                let (store, clock) = (Arc::clone(store), clock.clone());
                let (window, budget) = (settings.write_window, settings.store_timeout);
                Arc::new(Alone::watching(store, &self.name, window, budget, clock))
            }
            (None, None) => Arc::new(Alone::without_store()),
        };

        let forced_open = settings.gate.forced_open;
        let open_writes = OpenWrites::new(MAX_WRITES);
        let gate = Arc::new(LiveGate::new(secret, forced_open, open_writes));
        let limits = LocalLimits {
            values: settings.local_value_capacity,
            nulls: settings.local_null_capacity,
            stale_if_error: settings.stale_if_error,
        };
        let local =
            Arc::new(LocalView::new(Arc::clone(&gate), limits, clock.clone(), Arc::clone(&counts)));
        let bulkhead = BulkheadLimits {
            permits: settings.permits,
            unseen: settings.unseen_permits,
            queue: settings.queue_timeout,
            waiters: MAX_FLIGHTS,
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
            rebuild::follow_link(backplane.link_state(), Arc::clone(&gate), Arc::clone(&local));
        let mut background = vec![AbortOnDrop(tokio::spawn(standing))];
        let (quiesced, quiesced_at_start) = watch::channel(false);
        let mut quiescing = Box::pin(rebuild::quiesce_at_start(
            Arc::clone(&source),
            Arc::clone(&local),
            started,
            settings.write_window,
            Arc::clone(&progress),
            clock.clone(),
            quiesced,
        ));
        // A source that nobody else writes to is quiesced at once.
        if (&mut quiescing).now_or_never().is_none() {
            background.push(AbortOnDrop(tokio::spawn(quiescing)));
        }
        if !forced_open {
            let builder = rebuild::GenerationBuilder {
                gate: Arc::clone(&gate),
                settings: settings.gate,
                source,
                standing: backplane.link_state(),
                requests,
                progress: Arc::clone(&progress),
                clock: clock.clone(),
                quiesced_at_start,
                write_window: settings.write_window,
            };
            background.push(AbortOnDrop(tokio::spawn(builder.run())));
        }
        Ok(Guard(Arc::new(Inner {
            slot_prefix: slot_prefix(&self.name, &self.schema),
            name: self.name.into(),
            settings,
            gate,
            local,
            flights: Arc::new(Flights::new(MAX_FLIGHTS)),
            shared,
            bypass: SharedCacheBypass::new(clock.clone()),
            loader,
            backplane,
            clock,
            counts,
            progress,
            rebuilds,
            guarded_routes: AtomicU64::new(0),
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
            gate: self.gate.check(&K::kind())?,
            value_ttl: self.value_ttl,
            null_ttl: self.null_ttl,
            jitter: self.jitter,
            store_timeout: self.store_timeout,
            load_timeout: self.load_timeout,
            queue_timeout: self.queue_timeout,
            lease_ttl: Duration::ZERO,
            write_window: self.write_window,
            permits: self.max_concurrent_loads,
            unseen_permits: self.max_unseen_loads.unwrap_or((self.max_concurrent_loads / 4).max(1)),
            on_store_failure: self.on_store_failure,
            stale_if_error: self.stale_if_error,
            local_value_capacity: self.local_value_capacity,
            local_null_capacity: self.local_null_capacity,
        };
        let default_lease = settings.longest_fill().saturating_add(LEASE_MARGIN);
        settings.lease_ttl = self.lease_ttl.unwrap_or(default_lease);
        settings.check()?;
        Ok(settings)
    }
}
