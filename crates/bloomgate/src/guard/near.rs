//! What this process may serve from its own memory, and what it may publish there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::answer::Why;
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
    /// False while a write of a killed predecessor may still be under way (rule A8): no cache then
    /// takes what is loaded.
    settled: AtomicBool,
    /// True while other instances may write what this one isn't told of. The shared cache has their
    /// marks; the local one then serves nothing and takes nothing.
    in_company: AtomicBool,
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
            settled: AtomicBool::new(false),
            in_company: AtomicBool::new(false),
            counts,
        }
    }

    /// True once no write of a killed predecessor can be under way any more (rule A8).
    pub(crate) fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    /// True while every write is one that this process is told of.
    fn is_in_step(&self) -> bool {
        self.is_settled() && !self.in_company.load(Ordering::Acquire)
    }

    /// What a flight must know of its key: the generation *before* the open set, so that a write
    /// that begins in between shows in one of the two.
    pub(crate) fn boarding(&self, key: &KeyBytes) -> Boarding {
        let generation = self.generations.current(key);
        let open = self.gate.open_writes().is_open(key);
        Boarding { generation, open, in_step: self.is_in_step() }
    }

    /// True if no write of the key has begun or ended since, none is open (rule A13), and none of a
    /// predecessor can be under way. For the shared cache: what others write stands there.
    pub(crate) fn is_current(&self, key: &KeyBytes, since: Boarding) -> bool {
        let now = self.boarding(key);
        self.is_settled() && !since.open && !now.open && now.generation == since.generation
    }

    /// What is known and may be served. While the key is open, nothing (rule A4).
    pub(crate) fn lookup(&self, key: &KeyBytes) -> Option<Local<V>> {
        let found = if self.is_in_step() && !self.gate.open_writes().is_open(key) {
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
        let may = self.is_in_step() && !self.gate.open_writes().is_open(key);
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
        if since.open || !since.in_step {
            return;
        }
        // Not publishing is always safe, so what this says is of no interest.
        let _ = self.generations.publish_if(key, since.generation, || {
            if self.is_in_step() && !self.gate.open_writes().is_open(key) {
                put();
            }
        });
    }

    /// Begin and End both do this (rule A3).
    pub(crate) fn moved(&self, key: &KeyBytes) {
        self.generations.advance(key, || self.cache.forget(key));
    }

    /// No write of a killed predecessor is under way any more (rule A8).
    pub(crate) fn set_settled(&self) {
        self.outdate(|| self.settled.store(true, Ordering::Release));
    }

    /// Takes the backplane's standing. On any change in or out of company, what is known may be
    /// outdated, and so may every flight under way.
    pub(crate) fn set_standing(&self, standing: Standing) {
        let in_company = matches!(standing, Standing::Doubtful(Why::NotAlone));
        if in_company {
            // First of all, so that nothing is served or taken from here on.
            if self.in_company.swap(true, Ordering::AcqRel) {
                return;
            }
            self.outdate(|| {});
        } else if self.in_company.load(Ordering::Acquire) {
            self.outdate(|| self.in_company.store(false, Ordering::Release));
        }
    }

    /// Outdates every flight and forgets everything, then does what trusts the cache again.
    fn outdate(&self, then: impl FnOnce()) {
        self.generations.advance_all(|| {
            self.cache.forget_all();
            then();
        });
    }
}
