//! The status document of a guard, filled in.

use std::sync::atomic::Ordering;

use super::Guard;
use crate::answer::OpenReason;
use crate::key::Key;
use crate::telemetry::{CountsStatus, GateState, GateStatus, InFlight, Status};

impl<K: Key, V: Send + Sync + 'static> Guard<K, V> {
    /// The status document. Costs up to a millisecond, for the bits of a large gate are sampled.
    #[must_use]
    pub fn status(&self) -> Status {
        let inner = &*self.0;
        Status {
            enabled: true,
            name: inner.name.to_string(),
            ready: self.is_ready(),
            gate: self.gate_status(),
            counts: CountsStatus::of(&inner.counts),
            in_flight: InFlight {
                loads: inner.flights.running() as u64,
                writes: inner.gate.open_writes().len() as u64,
            },
            guarded_routes: inner.guarded_routes.load(Ordering::Relaxed),
            warm_up_error: inner.progress.last_error(),
            instances: inner.instances,
            fleet: inner.backplane.status(),
            shared_cache_error: inner.shared.as_ref().and_then(|shared| shared.last_error()),
        }
    }

    fn gate_status(&self) -> GateStatus {
        let gate = self.0.gate.snapshot();
        let shown = gate.serving.as_ref().or(gate.building.as_ref());
        let status = GateStatus {
            state: if gate.open_reason.is_none() { GateState::Closed } else { GateState::Open },
            reason: gate.open_reason.map(|reason| OpenReason::name(reason).to_owned()),
            detail: gate.open_reason.map(|reason| reason.to_string()),
            generation: gate.serving.as_ref().map_or(0, |generation| generation.number()),
            building: gate.building.is_some(),
            ..GateStatus::default()
        };
        let Some(shown) = shown else { return status };
        let statistics = shown.stats();
        GateStatus {
            family: shown.family().name().to_owned(),
            items: statistics.items,
            distinct: statistics.distinct,
            capacity: statistics.capacity,
            fill_ratio: statistics.fill_ratio,
            expected_false_positive_rate: statistics.expected_false_positive_rate,
            current_false_positive_rate: statistics.current_false_positive_rate,
            bytes: statistics.bytes,
            ..status
        }
    }
}
