//! The start of a guard from its description.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use bloomgate_filter::Secret;
use futures_util::FutureExt as _;
use tokio::sync::watch;

use super::builder::GuardBuilder;
use super::copy::CopyKind;
use super::gate_only::{GuardKind, NoLoader};
use super::local_view::LocalView;
use super::peer_events::Receiver;
use super::rebuild::{self, RebuildRequests};
use super::sentinel_budget::SentinelBudget;
use super::shared_cache_bypass::SharedCacheBypass;
use super::slots::Slots;
use super::{AbortOnDrop, Guard, Inner, RunningWrites};
use crate::error::{ConfigError, StoreErrorKind};
use crate::flight::Flights;
use crate::gate::LiveGate;
use crate::key::Key;
use crate::loader::{Bulkhead, BulkheadLimits, LimitedLoader, erase};
use crate::local_cache::LocalLimits;
use crate::ports::PeerEvents;
use crate::shared_cache::SharedCache;
use crate::telemetry::Counts;
use crate::warm_up::Progress;

/// Flights under way at a time, and waiters for the bulkhead: far more than a service that isn't
/// drowning has, few enough to keep memory bounded.
pub(super) const MAX_FLIGHTS: usize = 16_384;
/// Open writes at a time.
pub(super) const MAX_WRITES: usize = 10_000;

/// A required setting that wasn't given.
fn missing(field: &'static str) -> ConfigError {
    ConfigError::setting(field, "not given", "it is required")
}

impl<K: Key, V: GuardKind> GuardBuilder<K, V> {
    /// Starts the guard. It passes everything until its first warm-up has succeeded; a database or
    /// a shared cache that is down is tried again for as long as it takes.
    ///
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When a setting is nonsense, or the shared cache says that it will never do (a Redis older
    /// than 7.0).
    pub async fn build(self) -> Result<Guard<K, V>, ConfigError> {
        let loader = match self.loader {
            Some(loader) => loader,
            None if V::LOADS => return Err(missing("loader")),
            None => erase(NoLoader),
        };
        check_name(&self.name)?;
        let gate_settings = self.gate.check(&K::kind())?;
        let settings = self.settings.checked(self.given)?;
        let source = self.source.ok_or_else(|| missing("source"))?;
        let shared_secret = self.secret.is_some();
        let secret = match self.secret {
            Some(secret) => secret,
            None => Secret::generate().map_err(ConfigError::filter)?,
        };
        let name: Arc<str> = self.name.into();
        let clock = self.clock;
        let started = clock.now();
        let counts = Arc::new(Counts::default());
        let link = self.link.checked(self.store.as_ref(), &name, &settings)?;
        let shared = self.store.map(|store| {
            let counts = Arc::clone(&counts.shared);
            let name = Arc::clone(&name);
            Arc::new(SharedCache::new(name, store, settings.store_timeout, clock.clone(), counts))
        });
        if let Some(shared) = &shared
            && let Err(error) = shared.prepare().await
            && error.kind() == StoreErrorKind::Unsupported
        {
            return Err(ConfigError::Store(Arc::new(error)));
        }
        let (backplane, instances) = link.open(&name, &settings, &clock).await?;

        let forced_open = gate_settings.forced_open;
        let spec = &gate_settings.generation;
        let copy_kind = Arc::new(CopyKind::new(&K::kind(), spec, &secret, shared_secret));
        let gate = Arc::new(LiveGate::new(secret, forced_open, MAX_WRITES, clock.clone()));
        let limits = LocalLimits {
            values: settings.local_value_capacity,
            nulls: settings.local_null_capacity,
            stale_if_error: settings.stale_if_error,
        };
        let local =
            Arc::new(LocalView::new(Arc::clone(&gate), limits, clock.clone(), Arc::clone(&counts)));
        let slots = Arc::new(Slots::new(&name, &self.schema));
        let events: Arc<dyn PeerEvents> = Arc::new(Receiver {
            name: Arc::clone(&name),
            gate: Arc::clone(&gate),
            local: Arc::clone(&local),
            slots: Arc::clone(&slots),
            copy_kind: Arc::clone(&copy_kind),
        });
        backplane.attach(events).map_err(|error| {
            let fix = "give each guard a backplane of its own";
            ConfigError::setting("backplane", error.to_string(), fix)
        })?;
        let bulkhead = BulkheadLimits {
            permits: settings.max_concurrent_loads,
            unseen: settings.max_unseen_loads,
            queue: settings.queue_timeout,
            waiters: MAX_FLIGHTS,
        };
        let loader = LimitedLoader::new(
            loader,
            Bulkhead::new(bulkhead, clock.clone()),
            settings.load_timeout,
            clock.clone(),
            Arc::clone(&counts.loader),
            Arc::clone(&name),
        );
        let progress = Arc::new(Progress::new(Arc::clone(&name)));
        let (rebuilds, requests) = RebuildRequests::channel();
        let mut background = Vec::new();
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
        // A source that nothing else writes to is quiesced at once.
        if (&mut quiescing).now_or_never().is_none() {
            background.push(AbortOnDrop(tokio::spawn(quiescing)));
        }
        if !forced_open {
            let builder = rebuild::GenerationBuilder {
                name: Arc::clone(&name),
                gate: Arc::clone(&gate),
                settings: gate_settings,
                source,
                backplane: Arc::clone(&backplane),
                copy_kind,
                requests,
                progress: Arc::clone(&progress),
                clock: clock.clone(),
                quiesced_at_start,
                write_window: settings.write_window,
            };
            background.push(AbortOnDrop(tokio::spawn(builder.run())));
        }
        Ok(Guard(Arc::new(Inner {
            name,
            forced_open,
            started,
            gate,
            local,
            flights: Arc::new(Flights::new(MAX_FLIGHTS)),
            shared,
            slots,
            bypass: SharedCacheBypass::new(clock.clone()),
            sentinels: SentinelBudget::new(
                settings.local_null_capacity,
                settings.null_ttl,
                clock.clone(),
            ),
            loader,
            backplane,
            instances,
            clock,
            counts,
            progress,
            rebuilds,
            ready: AtomicBool::new(false),
            guarded_routes: AtomicU64::new(0),
            running_writes: watch::Sender::new(RunningWrites::default()),
            settings,
            _background: background,
        })))
    }
}

fn check_name(name: &str) -> Result<(), ConfigError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        let problem = format!("{name:?} can't be a namespace");
        let fix = "give 1 to 64 of a-z, 0-9, '-', '_', '.'";
        return Err(ConfigError::setting("builder(name)", problem, fix));
    }
    Ok(())
}
