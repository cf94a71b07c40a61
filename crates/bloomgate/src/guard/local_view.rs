//! What this process may serve from its own memory, and what it may publish there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::answer::OpenReason;
use crate::clock::Clock;
use crate::flight::{KeyGenerations, KeyVersion};
use crate::gate::LiveGate;
use crate::key::KeyBytes;
use crate::local_cache::{Local, LocalCache, LocalLimits};
use crate::ports::LinkState;
use crate::telemetry::Counts;

/// The local cache under the rules of writes (A3, A4) and of standing.
#[derive(Debug)]
pub(crate) struct LocalView<V> {
    gate: Arc<LiveGate>,
    generations: KeyGenerations,
    cache: LocalCache<V>,
    /// False while a write of a killed predecessor may still be under way (rule A8): no cache then
    /// takes what is loaded.
    quiesced: AtomicBool,
    /// True while other instances may write what this one isn't told of. The shared cache has their
    /// write intents; the local one then serves nothing and takes nothing.
    has_peers: AtomicBool,
    counts: Arc<Counts>,
}

impl<V: Send + Sync + 'static> LocalView<V> {
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
            has_peers: AtomicBool::new(false),
            counts,
        }
    }

    /// True once no write of a killed predecessor can be under way any more (rule A8).
    pub(crate) fn is_quiesced(&self) -> bool {
        self.quiesced.load(Ordering::Acquire)
    }

    /// True while every write is one that this process is told of.
    fn is_coherent(&self) -> bool {
        self.is_quiesced() && !self.has_peers.load(Ordering::Acquire)
    }

    /// What a flight must know of its key: the generation *before* the open set, so that a write
    /// that begins in between shows in one of the two.
    pub(crate) fn version(&self, key: &KeyBytes) -> KeyVersion {
        let generation = self.generations.current(key);
        let open = self.gate.open_writes().is_open(key);
        KeyVersion { generation, open, coherent: self.is_coherent() }
    }

    /// True if no write of the key has begun or ended since, none is open (rule A13), and none of a
    /// predecessor can be under way. For the shared cache: what others write stands there.
    pub(crate) fn is_current(&self, key: &KeyBytes, since: KeyVersion) -> bool {
        let now = self.version(key);
        self.is_quiesced() && !since.open && !now.open && now.generation == since.generation
    }

    /// What is known and may be served. While the key is open, nothing (rule A4).
    pub(crate) fn lookup(&self, key: &KeyBytes) -> Option<Local<V>> {
        let found = if self.is_coherent() && !self.gate.open_writes().is_open(key) {
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
        let may = self.is_coherent() && !self.gate.open_writes().is_open(key);
        let stale = if may { self.cache.stale(key) } else { None };
        if stale.is_some() {
            self.counts.local.stale_served.add();
        }
        stale
    }

    pub(crate) fn publish_value(
        &self,
        key: &KeyBytes,
        since: KeyVersion,
        value: Arc<V>,
        ttl: Duration,
    ) {
        self.publish(key, since, || self.cache.put_value(key.clone(), value, ttl));
    }

    pub(crate) fn publish_null(&self, key: &KeyBytes, since: KeyVersion, ttl: Duration) {
        self.publish(key, since, || {
            self.cache.put_null(key.clone(), ttl);
            self.counts.local.nulls_stored.add();
        });
    }

    /// Rule A3: only a flight of the current generation publishes, and never while a write is open.
    fn publish(&self, key: &KeyBytes, since: KeyVersion, put: impl FnOnce()) {
        if since.open || !since.coherent {
            return;
        }
        // Not publishing is always safe, so what this says is of no interest.
        let _ = self.generations.publish_if(key, since.generation, || {
            if self.is_coherent() && !self.gate.open_writes().is_open(key) {
                put();
            }
        });
    }

    /// Begin and End both do this (rule A3).
    pub(crate) fn invalidate(&self, key: &KeyBytes) {
        self.generations.advance(key, || self.cache.forget(key));
    }

    /// No write of a killed predecessor is under way any more (rule A8).
    pub(crate) fn set_quiesced(&self) {
        self.invalidate_all(|| self.quiesced.store(true, Ordering::Release));
    }

    /// Takes the backplane's standing. On any change in or out of company, what is known may be
    /// outdated, and so may every flight under way.
    pub(crate) fn set_link_state(&self, standing: LinkState) {
        let has_peers = matches!(standing, LinkState::OutOfSync(OpenReason::NotAlone));
        if has_peers {
            // First of all, so that nothing is served or taken from here on.
            if self.has_peers.swap(true, Ordering::AcqRel) {
                return;
            }
            self.invalidate_all(|| {});
        } else if self.has_peers.load(Ordering::Acquire) {
            self.invalidate_all(|| self.has_peers.store(false, Ordering::Release));
        }
    }

    /// Outdates every flight and forgets everything, then does what trusts the cache again.
    fn invalidate_all(&self, then: impl FnOnce()) {
        self.generations.advance_all(|| {
            self.cache.forget_all();
            then();
        });
    }
}
