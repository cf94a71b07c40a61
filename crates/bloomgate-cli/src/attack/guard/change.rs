//! The change of a guard's counters during a run.

use serde::Serialize;

use crate::attack::guard::status::{GuardCounts, GuardStatus};
use crate::attack::statistics::Statistics;

/// How the counters changed, by all traffic that the guard saw.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct GuardChange {
    pub(crate) absent_loads: u64,
    /// `None` if the guard saw none of the attack requests.
    pub(crate) absent_loads_per_1000: Option<f64>,
    pub(crate) refused: u64,
    /// `None` if the guard saw none of the attack requests.
    pub(crate) refused_per_1000: Option<f64>,
    pub(crate) null_hits: u64,
    pub(crate) passed_maybe: u64,
    pub(crate) passed_unknown: u64,
    pub(crate) loads: u64,
    pub(crate) errors: u64,
    pub(crate) shed: u64,
    pub(crate) timeouts: u64,
    pub(crate) enabled: Option<bool>,
    pub(crate) gate_open_before: Option<String>,
    pub(crate) gate_open_after: Option<String>,
}

impl GuardChange {
    /// The change from `before` to `after`, related to the attack requests that were sent; `None`
    /// if a counter went backwards, as after a restart.
    pub(crate) fn new(
        before: GuardStatus,
        after: GuardStatus,
        statistics: &Statistics,
    ) -> Option<Self> {
        let counts = difference(&before.counts, &after.counts)?;
        let mut change = Self {
            absent_loads: counts.absent_loads,
            absent_loads_per_1000: None,
            refused: counts.refused,
            refused_per_1000: None,
            null_hits: counts.null_hits,
            passed_maybe: counts.passed_maybe,
            passed_unknown: counts.passed_unknown,
            loads: counts.loads,
            errors: counts.errors,
            shed: counts.shed,
            timeouts: counts.timeouts,
            enabled: after.enabled,
            gate_open_before: before.gate_open,
            gate_open_after: after.gate_open,
        };
        let sent = statistics.attack.sent;
        if sent > 0 && change.saw_attack(statistics.legit.sent) {
            let per_1000 = |count: u64| Some(count as f64 * 1000.0 / sent as f64);
            change.absent_loads_per_1000 = per_1000(change.absent_loads);
            change.refused_per_1000 = per_1000(change.refused);
        }
        Some(change)
    }

    /// Requests that ended the way of an absent id: refused, answered by a sentinel, or loaded
    /// without finding a row.
    pub(crate) fn absent(&self) -> u64 {
        self.refused.saturating_add(self.null_hits).saturating_add(self.absent_loads)
    }

    /// The same and the loads that failed, which may have been for absent ids.
    pub(crate) fn accounted(&self) -> u64 {
        let failed = [self.errors, self.timeouts, self.shed];
        failed.into_iter().fold(self.absent(), u64::saturating_add)
    }

    /// Requests that the gate checked.
    pub(crate) fn checked(&self) -> u64 {
        self.refused.saturating_add(self.passed_maybe).saturating_add(self.passed_unknown)
    }

    /// Whether any attack request is in the counters. A guard without a loader checks requests
    /// and counts no loads; those that it checks may be the `legit` ones.
    pub(crate) fn saw_attack(&self, legit: u64) -> bool {
        self.accounted() > 0 || self.checked() > legit
    }
}

fn difference(before: &GuardCounts, after: &GuardCounts) -> Option<GuardCounts> {
    let change = |count: fn(&GuardCounts) -> u64| count(after).checked_sub(count(before));
    Some(GuardCounts {
        refused: change(|counts| counts.refused)?,
        passed_maybe: change(|counts| counts.passed_maybe)?,
        passed_unknown: change(|counts| counts.passed_unknown)?,
        null_hits: change(|counts| counts.null_hits)?,
        loads: change(|counts| counts.loads)?,
        absent_loads: change(|counts| counts.absent_loads)?,
        errors: change(|counts| counts.errors)?,
        shed: change(|counts| counts.shed)?,
        timeouts: change(|counts| counts.timeouts)?,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A change of these counters after `attack` and `legit` requests.
    pub(crate) fn change(counts: GuardCounts, attack: u64, legit: u64) -> GuardChange {
        let mut statistics = Statistics::new().unwrap();
        (statistics.attack.sent, statistics.legit.sent) = (attack, legit);
        let after = GuardStatus { counts, ..GuardStatus::default() };
        GuardChange::new(GuardStatus::default(), after, &statistics).unwrap()
    }

    #[test]
    fn counters_are_subtracted_and_related_to_the_attack_requests() {
        let before = GuardStatus {
            enabled: None,
            gate_open: Some("warming up".to_owned()),
            counts: GuardCounts { refused: 10, absent_loads: 2, loads: 7, ..Default::default() },
        };
        let after = GuardStatus {
            enabled: Some(true),
            gate_open: None,
            counts: GuardCounts {
                refused: 1009,
                absent_loads: 4,
                loads: 20,
                null_hits: 1,
                errors: 2,
                shed: 3,
                timeouts: 4,
                ..Default::default()
            },
        };
        let mut statistics = Statistics::new().unwrap();
        statistics.attack.sent = 2000;
        let change = GuardChange::new(before.clone(), after.clone(), &statistics).unwrap();
        assert_eq!((change.absent_loads, change.absent_loads_per_1000), (2, Some(1.0)));
        assert_eq!((change.refused, change.refused_per_1000), (999, Some(499.5)));
        assert_eq!((change.loads, change.errors, change.shed, change.timeouts), (13, 2, 3, 4));
        assert_eq!((change.absent(), change.accounted()), (1002, 1011));
        assert_eq!((change.enabled, change.gate_open_after), (Some(true), None));
        assert_eq!(change.gate_open_before.as_deref(), Some("warming up"));
        assert_eq!(GuardChange::new(after, before, &statistics), None, "after a restart");
    }

    #[test]
    fn a_guard_that_saw_no_attack_request_gives_no_rate() {
        let nothing = GuardCounts::default();
        let legit_only = GuardCounts { passed_maybe: 100, loads: 50, ..nothing };
        for counts in [nothing, legit_only] {
            let change = change(counts, 1000, 100);
            assert!(!change.saw_attack(100));
            assert_eq!((change.absent_loads_per_1000, change.refused_per_1000), (None, None));
        }
        for counts in [
            GuardCounts { refused: 1, ..nothing },
            GuardCounts { absent_loads: 1, ..nothing },
            GuardCounts { null_hits: 1, ..nothing },
            GuardCounts { shed: 1, ..nothing },
            GuardCounts { passed_unknown: 101, ..nothing },
        ] {
            assert!(change(counts, 1000, 100).absent_loads_per_1000.is_some(), "{counts:?}");
        }
    }

    #[test]
    fn no_attack_requests_give_no_rate() {
        let counts = GuardCounts { refused: 5, ..GuardCounts::default() };
        assert_eq!(change(counts, 0, 0).refused_per_1000, None);
    }
}
