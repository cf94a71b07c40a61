//! The queue of the run's requests, each handed out once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::ids::id::Id;
use super::ids::{AttackIds, LegitIds};

/// The two kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// For an id that should not exist.
    Attack,
    /// For an id that should exist.
    Legit,
}

/// How many requests of each kind a run has; together below 2^61.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrafficMix {
    pub(crate) attack: u64,
    pub(crate) legit: u64,
}

impl TrafficMix {
    /// Requests of both kinds.
    pub(crate) fn total(self) -> u64 {
        self.attack + self.legit
    }

    /// Legit requests among the first `index`: spread evenly, so that a run cut short has the
    /// same share as a whole one.
    fn legit_before(self, index: u64) -> u64 {
        if self.legit == 0 {
            return 0;
        }
        (u128::from(index) * u128::from(self.legit) / u128::from(self.total())) as u64
    }
}

/// One request to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedRequest {
    /// Its place in the run, from 0.
    pub(crate) index: u64,
    pub(crate) kind: Kind,
    pub(crate) id: Id,
}

/// The run's requests, shared by all connections.
#[derive(Debug)]
pub(crate) struct Traffic {
    mix: TrafficMix,
    attack: AttackIds,
    legit: Option<LegitIds>,
    next: AtomicU64,
    stopped: AtomicBool,
}

impl Traffic {
    pub(crate) fn new(mix: TrafficMix, attack: AttackIds, legit: Option<LegitIds>) -> Self {
        Self { mix, attack, legit, next: AtomicU64::new(0), stopped: AtomicBool::new(false) }
    }

    /// The next request, or `None` when all are handed out or the run was stopped.
    pub(crate) fn next(&self) -> Option<PlannedRequest> {
        if self.is_over() {
            return None;
        }
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.mix.total()).then(|| self.at(index))
    }

    fn at(&self, index: u64) -> PlannedRequest {
        let before = self.mix.legit_before(index);
        match &self.legit {
            Some(ids) if self.mix.legit_before(index + 1) > before => {
                PlannedRequest { index, kind: Kind::Legit, id: ids.get(before) }
            }
            _ => PlannedRequest { index, kind: Kind::Attack, id: self.attack.get(index - before) },
        }
    }

    /// Hands out nothing more.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether nothing more will be handed out.
    pub(crate) fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.handed_out() == self.mix.total()
    }

    /// Requests handed out so far.
    pub(crate) fn handed_out(&self) -> u64 {
        self.next.load(Ordering::Relaxed).min(self.mix.total())
    }

    /// All requests of the run.
    pub(crate) fn total(&self) -> u64 {
        self.mix.total()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::attack::args::IdRange;
    use crate::attack::ids::ExistingIds;

    fn traffic(attack: u64, legit: u64) -> Traffic {
        let range = ExistingIds::Range(IdRange { first: 1, last: 50 });
        let ids = LegitIds::new(range, 1.0, 9);
        let ids = ids.filter(|_| legit > 0);
        Traffic::new(TrafficMix { attack, legit }, AttackIds::Sequential(1000), ids)
    }

    proptest! {
        #[test]
        fn every_request_is_handed_out_once(attack in 1u64..500, legit in 0u64..500) {
            let traffic = traffic(attack, legit);
            let all: Vec<PlannedRequest> = std::iter::from_fn(|| traffic.next()).collect();
            let (attacks, others): (Vec<PlannedRequest>, Vec<PlannedRequest>) =
                all.iter().cloned().partition(|next| next.kind == Kind::Attack);
            prop_assert_eq!(others.len() as u64, legit);
            let ids: HashSet<Id> = attacks.iter().map(|next| next.id.clone()).collect();
            prop_assert_eq!(ids, (1000..1000 + attack).map(Id::Int).collect::<HashSet<Id>>());
            prop_assert!(others.iter().all(|next| matches!(next.id, Id::Int(1..=50))));
            prop_assert!(traffic.is_over() && traffic.next().is_none());
            prop_assert_eq!(traffic.handed_out(), attack + legit);
        }

        #[test]
        fn a_run_cut_short_has_the_same_share(attack in 1u64..1 << 40, legit in 0u64..1 << 40, part in 0.0..1.0f64) {
            let mix = TrafficMix { attack, legit };
            let index = (mix.total() as f64 * part) as u64;
            let fair = u128::from(index) * u128::from(legit) / u128::from(mix.total());
            prop_assert_eq!(u128::from(mix.legit_before(index)), fair);
        }
    }

    #[test]
    fn a_stopped_run_hands_out_nothing() {
        let traffic = traffic(10, 0);
        assert!(traffic.next().is_some());
        traffic.stop();
        assert_eq!((traffic.next(), traffic.handed_out()), (None, 1));
    }
}
