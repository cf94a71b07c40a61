//! The warnings of a run: reasons to doubt its report.

use indicatif::HumanCount;

use super::guard::change::GuardChange;
use super::statistics::{KindStatistics, Statistics};

/// What came of reading the guard before and after the traffic.
#[derive(Clone, Debug)]
pub(crate) enum GuardOutcome {
    /// There was no `--guard-url`.
    NotRequested,
    /// Read before, but not after; the sentence says why.
    Lost(String),
    /// Read twice.
    Changed(GuardChange),
}

/// What the answers and the guard's counters show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Sentences for the user, the most important first.
    pub(crate) warnings: Vec<String>,
    /// Whether the run shows nothing about absent ids; a warning says why.
    pub(crate) nothing_measured: bool,
}

impl Findings {
    /// Compares what was sent with what was answered and what the guard counted.
    pub(crate) fn new(statistics: &Statistics, guard: &GuardOutcome, connections: usize) -> Self {
        let Statistics { attack, legit, .. } = statistics;
        let mut findings = Self::default();
        if attack.answers() == 0 {
            findings.nothing_measured("no attack request was answered".to_owned());
        } else {
            match guard {
                GuardOutcome::NotRequested => findings.check_statuses(attack),
                GuardOutcome::Lost(reason) => {
                    findings.nothing_measured(format!("the guard's counters are lost: {reason}"))
                }
                GuardOutcome::Changed(change) => findings.check_counters(attack, legit, change),
            }
        }
        findings.warnings.extend(unexpected_statuses(attack));
        if let GuardOutcome::Changed(change) = guard {
            findings.warnings.extend(open_gate(change));
        }
        if statistics.connects > 0 && statistics.connect_failures > 0 {
            findings.warnings.push(format!(
                "{} attempts to connect failed, so that at times fewer than {connections} \
                 connections carried the load: the server refuses them, or the system's limit of \
                 open files is reached (ulimit -n); lower --connections",
                HumanCount(statistics.connect_failures)
            ));
        }
        findings
    }

    fn nothing_measured(&mut self, reason: String) {
        self.nothing_measured = true;
        self.warnings.push(format!("nothing was measured: {reason}"));
    }

    /// Without a guard, the statuses alone show whether the ids were looked up.
    fn check_statuses(&mut self, attack: &KindStatistics) {
        if !attack.statuses.keys().any(|&status| is_lookup(status)) {
            self.nothing_measured("no attack request was answered like an absent id".to_owned());
        }
    }

    fn check_counters(
        &mut self,
        attack: &KindStatistics,
        legit: &KindStatistics,
        change: &GuardChange,
    ) {
        // Existing ids are neither refused nor loaded in vain.
        let (answered, accounted) = (attack.answers() - attack.successes(), change.accounted());
        if answered == 0 && accounted == 0 {
            self.nothing_measured("all attack ids exist".to_owned());
        } else if !change.saw_attack(legit.sent) {
            self.nothing_measured(format!(
                "the guard at --guard-url counted none of the {} attack requests. Either --url is \
                 not a route behind this guard, or the route doesn't take these ids (see --ids)",
                HumanCount(attack.sent)
            ));
        } else if accounted < answered && change.checked() >= attack.answers() + legit.answers() {
            self.warnings.push(format!(
                "{} attack requests passed the gate without a load: the guard doesn't load here, \
                 so that its absent loads say nothing about the database",
                HumanCount(answered - accounted)
            ));
        } else if accounted < answered {
            self.warnings.push(format!(
                "the guard accounts for {} of the {} absent ids that were answered (refused, answered \
                 by a sentinel, or loaded): the others did not reach it. Another instance may \
                 have answered them, or a route without this guard",
                HumanCount(accounted),
                HumanCount(answered)
            ));
        }
        // Legit requests that found nothing may be among those that the guard counts as absent.
        let max_absent = attack.sent + (legit.sent - legit.successes());
        if change.absent() > max_absent {
            self.warnings.push(format!(
                "the guard counted {} absent ids, but only {} attack requests were sent: other \
                 traffic is in its counts",
                HumanCount(change.absent()),
                HumanCount(attack.sent)
            ));
        }
    }
}

/// Whether a status is that of a look-up that ended: found, or not found.
fn is_lookup(status: u16) -> bool {
    matches!(status, 200..300 | 404 | 410)
}

fn unexpected_statuses(attack: &KindStatistics) -> Vec<String> {
    let mut warnings = Vec::new();
    let found = attack.successes();
    if found > 0 {
        warnings.push(format!(
            "{} attack requests were answered 2xx: these ids exist, or the service answers 2xx for \
             every id",
            HumanCount(found)
        ));
    }
    for (&status, count) in attack.statuses.iter().filter(|&(&status, _)| !is_lookup(status)) {
        let advice = match status {
            300..400 => "the service redirects; give the URL that it redirects to",
            400 | 422 => "the service doesn't take these ids; see --ids",
            401 | 403 => "the service requires credentials; add --header",
            405 => "the service doesn't take GET here; correct --url",
            429 => "the service limits the rate; lower --rate or --connections",
            500.. => "the service fails or sheds load; lower --rate or --connections",
            _ => "404 is expected for an absent id",
        };
        warnings.push(format!(
            "{} attack requests were answered {status}: {advice}",
            HumanCount(*count)
        ));
    }
    warnings
}

fn open_gate(change: &GuardChange) -> Option<String> {
    let consequence = "it refuses nothing while it is open";
    if change.enabled == Some(false) {
        return Some("the guard is switched off: every id reaches the database".to_owned());
    }
    match (&change.gate_open_before, &change.gate_open_after) {
        (Some(_), Some(reason)) => {
            Some(format!("the gate was open before and after the run ({reason}): {consequence}"))
        }
        (Some(reason), None) => {
            Some(format!("the gate was open before the run ({reason}): {consequence}"))
        }
        (None, Some(reason)) => {
            Some(format!("the gate was open after the run ({reason}): {consequence}"))
        }
        (None, None) if change.passed_unknown > 0 => Some(format!(
            "{} requests passed while the gate was open during the run: {consequence}",
            HumanCount(change.passed_unknown)
        )),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::attack::guard::change;
    use crate::attack::guard::status::GuardCounts;

    fn statistics(attack: &[(u16, u64)], legit: &[(u16, u64)]) -> Statistics {
        let mut statistics = Statistics::new().unwrap();
        for (kind, statuses) in [(&mut statistics.attack, attack), (&mut statistics.legit, legit)] {
            for &(status, count) in statuses {
                for _ in 0..count {
                    kind.sent += 1;
                    kind.answered(status, Duration::from_millis(1));
                }
            }
        }
        statistics
    }

    fn findings(statistics: &Statistics, counts: GuardCounts) -> Findings {
        let (attack, legit) = (statistics.attack.sent, statistics.legit.sent);
        let change = change::tests::change(counts, attack, legit);
        Findings::new(statistics, &GuardOutcome::Changed(change), 1)
    }

    #[test]
    fn refusals_sentinels_and_loads_that_add_up_give_no_warning() {
        let counts = GuardCounts {
            refused: 90,
            passed_maybe: 20,
            null_hits: 4,
            loads: 16,
            absent_loads: 6,
            ..GuardCounts::default()
        };
        let findings = findings(&statistics(&[(404, 100)], &[(200, 10)]), counts);
        assert_eq!(findings, Findings::default());
    }

    #[test]
    fn a_guard_that_counted_nothing_measured_nothing() {
        for (attack, counts) in [
            ((404, 100), GuardCounts::default()),
            ((400, 100), GuardCounts::default()),
            // Only the legit requests reach this guard.
            ((404, 100), GuardCounts { passed_maybe: 10, loads: 10, ..GuardCounts::default() }),
        ] {
            let findings = findings(&statistics(&[attack], &[(200, 10)]), counts);
            assert!(findings.nothing_measured, "{counts:?}");
            let warning = &findings.warnings[0];
            assert!(warning.contains("counted none of the 100 attack requests"), "{warning}");
        }
    }

    #[test]
    fn attack_ids_that_exist_are_not_missing_from_the_counters() {
        let counts = GuardCounts { refused: 60, passed_maybe: 40, ..GuardCounts::default() };
        let found = findings(&statistics(&[(404, 60), (200, 40)], &[]), counts);
        assert!(!found.nothing_measured);
        assert_eq!(found.warnings.len(), 1, "{found:?}");
        assert!(found.warnings[0].contains("40 attack requests were answered 2xx"), "{found:?}");

        let counts = GuardCounts { passed_maybe: 100, loads: 100, ..GuardCounts::default() };
        let found = findings(&statistics(&[(200, 100)], &[]), counts);
        assert!(found.nothing_measured && found.warnings[0].contains("exist"), "{found:?}");
    }

    #[test]
    fn counters_that_fall_short_are_pointed_out() {
        let counts = GuardCounts { refused: 60, absent_loads: 1, ..GuardCounts::default() };
        let findings = findings(&statistics(&[(404, 100)], &[]), counts);
        assert!(!findings.nothing_measured);
        let warning = &findings.warnings[0];
        assert!(warning.contains("accounts for 61 of the 100 absent ids"), "{warning}");
    }

    #[test]
    fn a_guard_without_a_loader_is_recognised() {
        let counts = GuardCounts { refused: 99, passed_maybe: 11, ..GuardCounts::default() };
        let findings = findings(&statistics(&[(404, 100)], &[(200, 10)]), counts);
        assert!(!findings.nothing_measured);
        assert_eq!(findings.warnings.len(), 1);
        let warning = &findings.warnings[0];
        assert!(warning.contains("1 attack requests passed the gate without a load"), "{warning}");
    }

    #[test]
    fn foreign_traffic_in_the_counters_is_pointed_out() {
        let counts = GuardCounts { refused: 104, ..GuardCounts::default() };
        let foreign = findings(&statistics(&[(404, 100)], &[(404, 3)]), counts);
        assert!(foreign.warnings[0].contains("counted 104 absent ids"), "{foreign:?}");
        let own = findings(&statistics(&[(404, 100)], &[(404, 4)]), counts);
        assert_eq!(own, Findings::default());
    }

    #[test]
    fn without_a_guard_the_statuses_decide() {
        for (statuses, measured) in [
            (&[(404, 9)][..], true),
            (&[(410, 9)], true),
            (&[(200, 9)], true),
            (&[(503, 8), (404, 1)], true),
            (&[(400, 9)], false),
            (&[(301, 5), (401, 4)], false),
            (&[], false),
        ] {
            let statistics = statistics(statuses, &[]);
            let findings = Findings::new(&statistics, &GuardOutcome::NotRequested, 1);
            assert_eq!(findings.nothing_measured, !measured, "{statuses:?}");
        }
    }

    #[test]
    fn counters_that_are_lost_measure_nothing() {
        let lost = GuardOutcome::Lost("it was restarted".to_owned());
        let findings = Findings::new(&statistics(&[(404, 9)], &[]), &lost, 1);
        assert!(findings.nothing_measured);
        assert!(findings.warnings[0].ends_with("it was restarted"), "{findings:?}");
    }

    #[test]
    fn unexpected_statuses_come_with_advice() {
        for (status, advice) in [
            (200, "these ids exist"),
            (302, "redirects"),
            (400, "see --ids"),
            (401, "add --header"),
            (405, "correct --url"),
            (429, "lower --rate"),
            (503, "sheds load"),
            (418, "404 is expected"),
        ] {
            let statistics = statistics(&[(status, 2), (404, 1)], &[]);
            let findings = Findings::new(&statistics, &GuardOutcome::NotRequested, 1);
            assert_eq!(findings.warnings.len(), 1);
            let warning = &findings.warnings[0];
            assert!(warning.starts_with("2 attack requests were answered "), "{warning}");
            assert!(warning.contains(advice), "{warning}");
        }
    }

    #[test]
    fn an_open_gate_and_a_guard_switched_off_are_pointed_out() {
        let open = || Some("warming up".to_owned());
        for (before, after, passed_unknown, enabled, says) in [
            (open(), open(), 9, None, Some("open before and after the run (warming up)")),
            (open(), None, 9, Some(true), Some("open before the run (warming up)")),
            (None, open(), 0, Some(true), Some("open after the run (warming up)")),
            (None, None, 3, Some(true), Some("3 requests passed while the gate was open")),
            (None, None, 0, Some(true), None),
            (open(), open(), 9, Some(false), Some("the guard is switched off")),
        ] {
            let counts = GuardCounts { passed_unknown, ..GuardCounts::default() };
            let mut change = change::tests::change(counts, 9, 0);
            change.enabled = enabled;
            (change.gate_open_before, change.gate_open_after) = (before, after);
            match (open_gate(&change), says) {
                (Some(warning), Some(says)) => assert!(warning.contains(says), "{warning}"),
                (warning, says) => assert_eq!(warning.as_deref(), says),
            }
        }
    }

    #[test]
    fn connections_that_could_not_be_opened_are_pointed_out() {
        let mut statistics = statistics(&[(404, 9)], &[]);
        (statistics.connects, statistics.connect_failures) = (37, 100);
        let findings = Findings::new(&statistics, &GuardOutcome::NotRequested, 200);
        let says = "100 attempts to connect failed, so that at times fewer than 200 connections";
        assert!(findings.warnings[0].starts_with(says), "{findings:?}");
        statistics.connect_failures = 0;
        let findings = Findings::new(&statistics, &GuardOutcome::NotRequested, 200);
        assert_eq!(findings, Findings::default());
    }
}
