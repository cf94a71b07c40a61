//! The status document: one guard, as JSON.

use serde::{Deserialize, Serialize};

use super::Counts;
use crate::ports::FleetStatus;

/// The state of a guard. Serialises to the document that `/guard` of the example serves, and
/// deserialises from it; a field that is missing there has its default. It shows how large the
/// table is: not for the public.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Status {
    /// True: a guard stands before the loader.
    pub enabled: bool,
    /// The namespace.
    pub name: String,
    /// True once the service can answer correctly; see
    /// [`Guard::is_ready`](crate::Guard::is_ready).
    pub ready: bool,
    /// The gate.
    pub gate: GateStatus,
    /// Events since the process started; exact when idle.
    pub counts: CountsStatus,
    /// What is under way now.
    pub in_flight: InFlight,
    /// How many of the guard's layers stand before a route. 0 means that no route is guarded: a layer
    /// acts only on the routes that were added before it. A layer is counted once, before however
    /// many routes it stands, and by the first request at the latest.
    pub guarded_routes: u64,
    /// How the warm-up is doing; `None` once it has succeeded.
    pub warm_up_error: Option<String>,
    /// Why the shared cache can't be used now, if it can't.
    pub shared_cache_error: Option<String>,
    /// How this instance keeps in step with others.
    pub instances: Instances,
    /// The members of the fleet that this instance belongs to; `None` without one.
    pub fleet: Option<FleetStatus>,
}

/// How an instance keeps in step with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Instances {
    /// It shares no cache, and is on its own.
    #[default]
    NoStore,
    /// It is declared to be the only one, and nothing checks that.
    DeclaredSingle,
    /// Through the log of a fleet.
    Fleet,
    /// Through a backplane that was given.
    Backplane,
}

/// Whether the gate refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum GateState {
    /// It refuses ids that provably don't exist.
    Closed,
    /// It passes everything.
    #[default]
    Open,
}

/// The gate's generation in service, or while there is none, the one that is being filled.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GateStatus {
    /// Open or closed.
    pub state: GateState,
    /// Why it is open, in a word (see [`OpenReason::name`](crate::OpenReason::name)); `None` when closed.
    pub reason: Option<String>,
    /// The same in a sentence.
    pub detail: Option<String>,
    /// Number of the generation in service, from 1; 0 while there is none.
    pub generation: u64,
    /// The filter's family; empty while there is no filter.
    pub family: String,
    /// Ids added to it, with repetitions.
    pub items: u64,
    /// Distinct ids in it: exact in a bitmap or a set, estimated from the bits of a Bloom filter;
    /// `None` if every bit is set, or while there is no filter.
    pub distinct: Option<u64>,
    /// Ids it is sized for; `None` if it grows, or while there is no filter.
    pub capacity: Option<u64>,
    /// Share of its bits that are set, or of its permits that are taken, 0 to 1.
    pub fill_ratio: f64,
    /// False-positive rate to expect at capacity, 0 to 1.
    pub expected_false_positive_rate: f64,
    /// False-positive rate to expect at the present fill, 0 to 1.
    pub current_false_positive_rate: f64,
    /// Memory of the filter, in bytes.
    pub bytes: u64,
    /// True while another generation is being filled.
    pub building: bool,
}

/// All counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CountsStatus {
    /// Requests refused by the gate.
    pub refused: u64,
    /// Requests passed because the filter couldn't rule the id out.
    pub passed_maybe: u64,
    /// Requests passed because the gate was open.
    pub passed_unknown: u64,
    /// The local cache.
    pub local: CacheCounts,
    /// The shared cache.
    pub shared: SharedCacheCounts,
    /// The loader.
    pub loader: LoaderStatus,
    /// Sentinels stored.
    pub nulls_stored: NullsStored,
    /// Values served past their end because the database failed.
    pub stale_served: u64,
    /// Writes that ended with a known outcome.
    pub writes_ended: u64,
    /// Writes of unknown outcome.
    pub writes_unknown: u64,
    /// Writes that were refused before they started.
    pub writes_refused: u64,
    /// Writes that went on without a write intent, outside the guarantee.
    pub writes_without_intent: u64,
}

/// Look-ups in a cache.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CacheCounts {
    /// Found a row.
    pub value_hits: u64,
    /// Found a sentinel.
    pub null_hits: u64,
    /// Found nothing.
    pub misses: u64,
}

/// Look-ups in the shared cache.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SharedCacheCounts {
    /// Found a row.
    pub value_hits: u64,
    /// Found a sentinel.
    pub null_hits: u64,
    /// Found nothing that could be used.
    pub misses: u64,
    /// Operations that failed, those that the breaker answered included.
    pub errors: u64,
    /// Rows that could not be decoded (counted as misses too).
    pub undecodable: u64,
}

/// Loads.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LoaderStatus {
    /// Queries begun.
    pub loads: u64,
    /// Queries that found a row.
    pub found: u64,
    /// Queries that completed without a row.
    pub absent: u64,
    /// Queries that failed, panics included.
    pub errors: u64,
    /// Queries cut off by the load's budget.
    pub timeouts: u64,
    /// Loads that found no place in time and never began.
    pub shed: u64,
    /// Loaders that panicked.
    pub panics: u64,
}

/// Sentinels stored.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct NullsStored {
    /// In this process.
    pub local: u64,
    /// In the shared cache.
    pub shared: u64,
}

/// What is under way now.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct InFlight {
    /// Flights: look-ups in the shared cache and loads.
    pub loads: u64,
    /// Open writes, those of unknown outcome included.
    pub writes: u64,
}

impl CountsStatus {
    pub(crate) fn of(counts: &Counts) -> Self {
        let Counts { verdicts, local, shared, loader, writes } = counts;
        Self {
            refused: verdicts.refused.get(),
            passed_maybe: verdicts.passed_maybe.get(),
            passed_unknown: verdicts.passed_unknown.get(),
            local: CacheCounts {
                value_hits: local.value_hits.get(),
                null_hits: local.null_hits.get(),
                misses: local.misses.get(),
            },
            shared: SharedCacheCounts {
                value_hits: shared.value_hits.get(),
                null_hits: shared.null_hits.get(),
                misses: shared.misses.get(),
                errors: shared.errors.get(),
                undecodable: shared.undecodable.get(),
            },
            loader: LoaderStatus {
                loads: loader.loads.get(),
                found: loader.found.get(),
                absent: loader.absent.get(),
                errors: loader.errors.get(),
                timeouts: loader.timeouts.get(),
                shed: loader.shed.get(),
                panics: loader.panics.get(),
            },
            nulls_stored: NullsStored {
                local: local.nulls_stored.get(),
                shared: shared.nulls_stored.get(),
            },
            stale_served: local.stale_served.get(),
            writes_ended: writes.ended.get(),
            writes_unknown: writes.unknown.get(),
            writes_refused: writes.refused.get(),
            writes_without_intent: writes.without_intent.get(),
        }
    }
}
