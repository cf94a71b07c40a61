//! The report of a run, as numbers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::findings::{Findings, GuardOutcome};
use super::guard::change::GuardChange;
use super::statistics::{KindStatistics, Latency, Statistics};

/// Why the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EndReason {
    /// All requests were sent.
    Finished,
    /// `--duration` was over.
    Duration,
    /// Ctrl-C.
    Interrupt,
    /// The server could not be reached any more.
    GaveUp,
}

/// The settings of the run, repeated in the report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunSettings {
    pub(crate) url: String,
    pub(crate) guard_url: Option<String>,
    /// `int`, `uuid` or a file.
    pub(crate) ids: String,
    /// Of integers only.
    pub(crate) profile: Option<&'static str>,
    pub(crate) seed: u64,
    pub(crate) connections: usize,
    pub(crate) rate: Option<u64>,
}

/// The report; serialised, it is the object that `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub(crate) settings: RunSettings,
    pub(crate) ended: EndReason,
    pub(crate) interrupted: bool,
    pub(crate) elapsed_seconds: f64,
    pub(crate) requests_per_second: f64,
    pub(crate) attack: KindReport,
    pub(crate) legit: KindReport,
    pub(crate) legit_non_2xx: u64,
    pub(crate) legit_404: u64,
    pub(crate) attack_2xx: u64,
    pub(crate) connects: u64,
    pub(crate) errors: Errors,
    pub(crate) guard: Option<GuardChange>,
    pub(crate) nothing_measured: bool,
    pub(crate) warnings: Vec<String>,
}

/// Requests of one kind.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct KindReport {
    pub(crate) requests: u64,
    pub(crate) answered: u64,
    pub(crate) latency_us: Option<Latency>,
    pub(crate) statuses: BTreeMap<u16, u64>,
}

/// Errors below HTTP, of both kinds together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Errors {
    pub(crate) connect: u64,
    pub(crate) transport: u64,
    pub(crate) timeouts: u64,
    pub(crate) unanswered: u64,
}

impl From<&KindStatistics> for KindReport {
    fn from(kind: &KindStatistics) -> Self {
        Self {
            requests: kind.sent,
            answered: kind.answers(),
            latency_us: kind.latency(),
            statuses: kind.statuses.clone(),
        }
    }
}

impl Report {
    /// Sums up a run that took `elapsed`.
    pub(crate) fn new(
        settings: RunSettings,
        ended: EndReason,
        elapsed: Duration,
        statistics: &Statistics,
        guard: GuardOutcome,
    ) -> Self {
        let Findings { nothing_measured, mut warnings } =
            Findings::new(statistics, &guard, settings.connections);
        let (attack, legit) = (&statistics.attack, &statistics.legit);
        let seconds = elapsed.as_secs_f64();
        let answers = attack.answers() + legit.answers();
        let per_second = if seconds > 0.0 { answers as f64 / seconds } else { 0.0 };
        if ended == EndReason::GaveUp {
            warnings.push(
                "the run gave up before its end: the server could not be reached any more"
                    .to_owned(),
            );
        }
        Self {
            settings,
            ended,
            interrupted: ended == EndReason::Interrupt,
            elapsed_seconds: seconds,
            requests_per_second: per_second,
            attack: attack.into(),
            legit: legit.into(),
            legit_non_2xx: legit.answers() - legit.successes(),
            legit_404: legit.with_status(404),
            attack_2xx: attack.successes(),
            connects: statistics.connects,
            errors: Errors {
                connect: statistics.connect_failures,
                transport: attack.broken + legit.broken,
                timeouts: attack.timeouts + legit.timeouts,
                unanswered: attack.unanswered() + legit.unanswered(),
            },
            guard: match guard {
                GuardOutcome::Changed(change) => Some(change),
                GuardOutcome::NotRequested | GuardOutcome::Lost(_) => None,
            },
            nothing_measured,
            warnings,
        }
    }

    /// The exit code: an interrupt comes first, since such a run shows nothing.
    pub(crate) fn exit_code(&self, fail_on_refusal: bool) -> u8 {
        match self.ended {
            EndReason::Interrupt => 130,
            EndReason::GaveUp => 1,
            EndReason::Finished | EndReason::Duration => {
                u8::from(self.nothing_measured || (fail_on_refusal && self.legit_404 > 0))
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::attack::traffic::Kind;

    pub(crate) fn sample(ended: EndReason) -> Report {
        let mut statistics = Statistics::new().unwrap();
        statistics.connects = 2;
        statistics.connect_failures = 1;
        for (kind, status, count) in [
            (Kind::Attack, 404, 1500),
            (Kind::Attack, 200, 2),
            (Kind::Legit, 200, 150),
            (Kind::Legit, 404, 3),
            (Kind::Legit, 503, 4),
        ] {
            for _ in 0..count {
                statistics.of(kind).sent += 1;
                statistics.of(kind).answered(status, Duration::from_micros(250));
            }
        }
        statistics.attack.sent += 3;
        statistics.attack.timeouts += 1;
        statistics.attack.broken += 1;
        let settings = RunSettings {
            url: "http://127.0.0.1/{id}".to_owned(),
            guard_url: None,
            ids: "int".to_owned(),
            profile: Some("random"),
            seed: 42,
            connections: 2,
            rate: None,
        };
        Report::new(
            settings,
            ended,
            Duration::from_millis(500),
            &statistics,
            GuardOutcome::NotRequested,
        )
    }

    #[test]
    fn counts_of_both_kinds_add_up() {
        let report = sample(EndReason::Finished);
        assert_eq!((report.attack.requests, report.attack.answered), (1505, 1502));
        assert_eq!((report.legit.requests, report.legit.answered), (157, 157));
        assert!((report.requests_per_second - 1659.0 * 2.0).abs() < 1e-6);
        assert_eq!((report.legit_non_2xx, report.legit_404, report.attack_2xx), (7, 3, 2));
        let errors = Errors { connect: 1, transport: 1, timeouts: 1, unanswered: 1 };
        assert_eq!(report.errors, errors);
        let begins = ["2 attack requests were answered 2xx", "1 attempts to connect failed"];
        assert_eq!(report.warnings.len(), begins.len());
        for (warning, begin) in report.warnings.iter().zip(begins) {
            assert!(warning.starts_with(begin), "{warning}");
        }
    }

    #[test]
    fn json_has_the_documented_fields() {
        let json = serde_json::to_value(sample(EndReason::Interrupt)).unwrap();
        assert_eq!(json["seed"], 42);
        assert_eq!(json["attack"]["statuses"]["404"], 1500);
        assert_eq!(json["attack"]["latency_us"]["p999"], 250);
        assert_eq!(json["interrupted"], true);
        assert_eq!(json["ended"], "interrupt");
        assert!(json["guard"].is_null() && json["rate"].is_null());
    }

    #[test]
    fn exit_codes_tell_failures_and_interrupts_apart() {
        assert_eq!(sample(EndReason::Finished).exit_code(false), 0);
        assert_eq!(sample(EndReason::Finished).exit_code(true), 1);
        assert_eq!(sample(EndReason::Duration).exit_code(true), 1);
        assert_eq!(sample(EndReason::GaveUp).exit_code(false), 1);
        assert_eq!(sample(EndReason::Interrupt).exit_code(true), 130);
        let mut nothing = sample(EndReason::Finished);
        nothing.nothing_measured = true;
        assert_eq!(nothing.exit_code(false), 1);
    }
}
