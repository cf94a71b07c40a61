//! The local cache under the rules of writes and of the link.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::Clock;
use crate::flight::{KeyGenerations, KeyVersion};
use crate::gate::LiveGate;
use crate::key::KeyBytes;
use crate::local_cache::{Local, LocalCache, LocalLimits};
use crate::telemetry::Counts;

/// The local cache under the rules of writes (A3, A4) and of the link (C20).
#[derive(Debug)]
pub(crate) struct LocalView<K, V> {
    gate: Arc<LiveGate>,
    generations: KeyGenerations,
    cache: LocalCache<K, V>,
    /// False while a write of a killed predecessor may still be under way (rule A8): no cache then
    /// takes what is loaded.
    quiesced: AtomicBool,
    counts: Arc<Counts>,
}

impl<K, V> LocalView<K, V>
where
    K: Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
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
            quiesced: AtomicBool::new(false),
            counts,
        }
    }

    /// True once no write of a killed predecessor can be under way any more (rule A8).
    pub(crate) fn is_quiesced(&self) -> bool {
        self.quiesced.load(Ordering::Acquire)
    }

    /// True while every write is one that this process knows of. To be asked after a look-up, so
    /// that a process that is paused between the two serves nothing when it wakes.
    fn is_coherent(&self) -> bool {
        self.is_quiesced() && self.gate.spares_caches()
    }

    /// What a flight must know of its key: the generation *before* the open set, so that a write
    /// that begins in between shows in one of the two.
    pub(crate) fn version(&self, key: &KeyBytes) -> KeyVersion {
        let generation = self.generations.current(key);
        let open = self.gate.open_writes().is_open(key);
        KeyVersion { generation, open, coherent: self.is_coherent() }
    }

    /// True if no write of the key has begun or ended since, none is open (rule A13), and none of a
    /// predecessor can be under way. For the shared cache, which has the write intents of others.
    pub(crate) fn is_current(&self, key: &KeyBytes, since: KeyVersion) -> bool {
        let now = self.version(key);
        self.is_quiesced() && !since.open && !now.open && now.generation == since.generation
    }

    /// What is known and may be served. While the key is open, nothing (rule A4).
    pub(crate) fn lookup(&self, key: &KeyBytes) -> Option<Local<V>> {
        let found = self.cache.get(key).filter(|_| self.may_serve(key));
        match &found {
            Some(Local::Value(_)) => self.counts.local.value_hits.add(),
            Some(Local::Null) => self.counts.local.null_hits.add(),
            None => self.counts.local.misses.add(),
        }
        found
    }

    /// A value past its end that no write has touched.
    pub(crate) fn stale(&self, key: &KeyBytes) -> Option<Arc<V>> {
        let stale = self.cache.stale(key).filter(|_| self.may_serve(key));
        if stale.is_some() {
            self.counts.local.stale_served.add();
        }
        stale
    }

    fn may_serve(&self, key: &KeyBytes) -> bool {
        self.is_coherent() && !self.gate.open_writes().is_open(key)
    }

    pub(crate) fn publish_value(
        &self,
        (key, bytes): (&K, &KeyBytes),
        since: KeyVersion,
        value: Arc<V>,
        ttl: Duration,
    ) {
        self.publish(bytes, since, || self.cache.put_value(bytes.clone(), key, value, ttl));
    }

    pub(crate) fn publish_null(
        &self,
        (key, bytes): (&K, &KeyBytes),
        since: KeyVersion,
        ttl: Duration,
    ) {
        self.publish(bytes, since, || {
            self.cache.put_null(bytes.clone(), key, ttl);
            self.counts.local.nulls_stored.add();
        });
    }

    /// Rule A3: only a flight of the current generation publishes, and never while a write is open.
    fn publish(&self, key: &KeyBytes, since: KeyVersion, put: impl FnOnce()) {
        if since.open || !since.coherent {
            return;
        }
        // Not publishing is always safe, so the answer is of no interest.
        let _ = self.generations.publish_if(key, since.generation, || {
            if self.may_serve(key) {
                put();
            }
        });
    }

    /// Drops what is cached of the key and outdates its flights. Begin and End both do this
    /// (rule A3).
    pub(crate) fn invalidate(&self, key: &KeyBytes) {
        self.generations.advance(key, || self.cache.forget(key));
    }

    /// Drops everything and outdates every flight.
    pub(crate) fn invalidate_all(&self) {
        self.invalidate_all_then(|| {});
    }

    /// No write of a killed predecessor is under way any more (rule A8).
    pub(crate) fn set_quiesced(&self) {
        self.invalidate_all_then(|| self.quiesced.store(true, Ordering::Release));
    }

    /// The keys of which something is cached here.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (KeyBytes, K)> {
        self.cache.keys()
    }

    fn invalidate_all_then(&self, then: impl FnOnce()) {
        self.generations.advance_all(|| {
            self.cache.forget_all();
            then();
        });
    }
}
