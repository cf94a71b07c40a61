//! What this process may serve from its own memory, and what it may publish there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::Clock;
use crate::flight::{Boarding, KeyGenerations};
use crate::gate::LiveGate;
use crate::key::KeyBytes;
use crate::local_cache::{Local, LocalCache, LocalLimits};
use crate::ports::Standing;
use crate::telemetry::Counts;

/// The local cache under the rules of writes (A3, A4) and of standing.
#[derive(Debug)]
pub(crate) struct Near<V> {
    gate: Arc<LiveGate>,
    generations: KeyGenerations,
    cache: LocalCache<V>,
    /// False while other instances may write what this one isn't told of: the local cache then
    /// serves nothing and takes nothing.
    trusted: AtomicBool,
    counts: Arc<Counts>,
}

impl<V: Send + Sync + 'static> Near<V> {
    pub(crate) fn new(
        gate: Arc<LiveGate>,
        limits: LocalLimits,
        clock: Clock,
        counts: Arc<Counts>,
    ) -> Self {
        Self {
            gate,
            generations: KeyGenerations::new(),
            cache: LocalCache::new(limits, clock),
            trusted: AtomicBool::new(true),
            counts,
        }
    }

    /// What a flight must know of its key: the generation *before* the open set, so that a write
    /// that begins in between shows in one of the two.
    pub(crate) fn boarding(&self, key: &KeyBytes) -> Boarding {
        let generation = self.generations.current(key);
        Boarding { generation, open: self.gate.open_writes().is_open(key) }
    }

    /// True if no write of the key has begun or ended since, and none is open (rule A13).
    pub(crate) fn is_current(&self, key: &KeyBytes, since: Boarding) -> bool {
        !since.open && {
            let now = self.boarding(key);
            !now.open && now.generation == since.generation
        }
    }

    /// What is known and may be served. While the key is open, nothing (rule A4).
    pub(crate) fn lookup(&self, key: &KeyBytes) -> Option<Local<V>> {
        let found = if self.trusted.load(Ordering::Acquire) && !self.gate.open_writes().is_open(key)
        {
            self.cache.get(key)
        } else {
            None
        };
        match &found {
            Some(Local::Value(_)) => self.counts.local.value_hits.add(),
            Some(Local::Null) => self.counts.local.null_hits.add(),
            None => self.counts.local.misses.add(),
        }
        found
    }

    /// A value past its end that no write has touched.
    pub(crate) fn stale(&self, key: &KeyBytes) -> Option<Arc<V>> {
        let may = self.trusted.load(Ordering::Acquire) && !self.gate.open_writes().is_open(key);
        let stale = if may { self.cache.stale(key) } else { None };
        if stale.is_some() {
            self.counts.local.stale_served.add();
        }
        stale
    }

    pub(crate) fn publish_value(
        &self,
        key: &KeyBytes,
        since: Boarding,
        value: Arc<V>,
        ttl: Duration,
    ) {
        self.publish(key, since, || self.cache.put_value(key.clone(), value, ttl));
    }

    pub(crate) fn publish_null(&self, key: &KeyBytes, since: Boarding, ttl: Duration) {
        self.publish(key, since, || {
            self.cache.put_null(key.clone(), ttl);
            self.counts.local.nulls_stored.add();
        });
    }

    /// Rule A3: only a flight of the current generation publishes, and never while a write is open.
    fn publish(&self, key: &KeyBytes, since: Boarding, put: impl FnOnce()) {
        if since.open {
            return;
        }
        // Not publishing is always safe, so what this says is of no interest.
        let _ = self.generations.publish_if(key, since.generation, || {
            if self.trusted.load(Ordering::Acquire) && !self.gate.open_writes().is_open(key) {
                put();
            }
        });
    }

    /// Begin and End both do this (rule A3).
    pub(crate) fn moved(&self, key: &KeyBytes) {
        self.generations.advance(key, || self.cache.forget(key));
    }

    /// Takes the backplane's standing. On any change in or out of company, what is known may be
    /// outdated, and so may every flight under way.
    pub(crate) fn set_standing(&self, standing: Standing) {
        let trusted = !matches!(standing, Standing::Doubtful(crate::Why::NotAlone));
        if self.trusted.swap(trusted, Ordering::AcqRel) != trusted {
            self.generations.advance_all(|| self.cache.forget_all());
        }
    }
}
