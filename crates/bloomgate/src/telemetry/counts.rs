//! The counters, exact once the guard is idle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A count of events. Relaxed: counters order nothing.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What the gate said. On a cache line of its own: an attack writes it at every request, and
/// must not slow down who reads a peer.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct VerdictCounts {
    pub(crate) refused: Counter,
    pub(crate) passed_maybe: Counter,
    pub(crate) passed_unknown: Counter,
}

/// What the local cache said.
#[derive(Debug, Default)]
pub(crate) struct LocalCounts {
    pub(crate) value_hits: Counter,
    pub(crate) null_hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) nulls_stored: Counter,
    pub(crate) stale_served: Counter,
}

/// What the shared cache said.
#[derive(Debug, Default)]
pub(crate) struct SharedCounts {
    pub(crate) value_hits: Counter,
    pub(crate) null_hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) errors: Counter,
    pub(crate) nulls_stored: Counter,
    pub(crate) undecodable: Counter,
}

/// What the loader did. `max_concurrent_loads` counts queries begun; each ends as one of found, absent, error or
/// time-out. `shed` counts loads that never began.
#[derive(Debug, Default)]
pub(crate) struct LoaderCounts {
    pub(crate) loads: Counter,
    pub(crate) found: Counter,
    pub(crate) absent: Counter,
    pub(crate) errors: Counter,
    pub(crate) timeouts: Counter,
    pub(crate) shed: Counter,
    pub(crate) panics: Counter,
}

/// What became of writes.
#[derive(Debug, Default)]
pub(crate) struct WriteCounts {
    /// Ended with a known outcome.
    pub(crate) ended: Counter,
    /// Of unknown outcome, left open until the write window had passed.
    pub(crate) unknown: Counter,
    /// Refused at Begin.
    pub(crate) refused: Counter,
    /// Went on without a write intent or an announcement, under `AllowStale`.
    pub(crate) without_intent: Counter,
}

/// All counters of a guard.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) verdicts: VerdictCounts,
    pub(crate) local: LocalCounts,
    pub(crate) shared: Arc<SharedCounts>,
    pub(crate) loader: Arc<LoaderCounts>,
    pub(crate) writes: WriteCounts,
}
