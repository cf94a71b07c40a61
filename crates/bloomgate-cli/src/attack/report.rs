//! What a run found, as numbers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::guard_status::GuardChange;
use super::tally::{Latency, Side, Tally};

/// Why the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ended {
    /// All requests were sent.
    Finished,
    /// `--duration` was over.
    Duration,
    /// Ctrl-C.
    Interrupt,
    /// The server could not be reached any more.
    GaveUp,
}

/// What was asked for, repeated in the report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Asked {
    pub(crate) url: String,
    pub(crate) profile: &'static str,
    pub(crate) seed: u64,
    pub(crate) connections: usize,
    pub(crate) rate: Option<u64>,
}

/// The report; serialised, it is the object that `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub(crate) asked: Asked,
    pub(crate) ended: Ended,
    pub(crate) interrupted: bool,
    pub(crate) elapsed_seconds: f64,
    pub(crate) requests_per_second: f64,
    pub(crate) attack: SideReport,
    pub(crate) ordinary: SideReport,
    pub(crate) ordinary_non_2xx: u64,
    pub(crate) ordinary_404: u64,
    pub(crate) attack_2xx: u64,
    pub(crate) connects: u64,
    pub(crate) errors: Errors,
    pub(crate) guard: Option<GuardChange>,
    pub(crate) warnings: Vec<String>,
}

/// Requests of one kind.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SideReport {
    pub(crate) requests: u64,
    pub(crate) answered: u64,
    pub(crate) latency_us: Option<Latency>,
    pub(crate) statuses: BTreeMap<u16, u64>,
}

/// What went wrong below HTTP, of both kinds together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Errors {
    pub(crate) connect: u64,
    pub(crate) transport: u64,
    pub(crate) timeouts: u64,
    pub(crate) unanswered: u64,
}

impl From<&Side> for SideReport {
    fn from(side: &Side) -> Self {
        Self {
            requests: side.sent,
            answered: side.answers(),
            latency_us: side.latency(),
            statuses: side.statuses.clone(),
        }
    }
}

impl Report {
    /// Sums up a run that took `elapsed`.
    pub(crate) fn new(
        asked: Asked,
        ended: Ended,
        elapsed: Duration,
        tally: &Tally,
        guard: Option<GuardChange>,
        mut warnings: Vec<String>,
    ) -> Self {
        let (attack, ordinary) = (&tally.attack, &tally.ordinary);
        let seconds = elapsed.as_secs_f64();
        let answers = attack.answers() + ordinary.answers();
        let per_second = if seconds > 0.0 { answers as f64 / seconds } else { 0.0 };
        let attack_2xx = attack.successes();
        if attack_2xx > 0 {
            warnings.push(format!(
                "{attack_2xx} attack requests were answered 2xx: these ids exist, \
                 or the service finds whatever it is asked for"
            ));
        }
        if ended == Ended::GaveUp {
            warnings.push(
                "the run gave up before its end: the server could not be reached any more"
                    .to_owned(),
            );
        }
        Self {
            asked,
            ended,
            interrupted: ended == Ended::Interrupt,
            elapsed_seconds: seconds,
            requests_per_second: per_second,
            attack: attack.into(),
            ordinary: ordinary.into(),
            ordinary_non_2xx: ordinary.answers() - ordinary.successes(),
            ordinary_404: ordinary.with_status(404),
            attack_2xx,
            connects: tally.connects,
            errors: Errors {
                connect: tally.connect_failures,
                transport: attack.broken + ordinary.broken,
                timeouts: attack.timeouts + ordinary.timeouts,
                unanswered: attack.unanswered() + ordinary.unanswered(),
            },
            guard,
            warnings,
        }
    }

    /// The exit code: an interrupt outranks the rest, since such a run proves nothing.
    pub(crate) fn exit_code(&self, fail_on_refusal: bool) -> u8 {
        match self.ended {
            Ended::Interrupt => 130,
            Ended::GaveUp => 1,
            Ended::Finished | Ended::Duration => u8::from(fail_on_refusal && self.ordinary_404 > 0),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::attack::traffic::Kind;

    pub(crate) fn sample(ended: Ended) -> Report {
        let mut tally = Tally::new().unwrap();
        tally.connects = 2;
        tally.connect_failures = 1;
        for (kind, status, count) in [
            (Kind::Attack, 404, 1500),
            (Kind::Attack, 200, 2),
            (Kind::Ordinary, 200, 150),
            (Kind::Ordinary, 404, 3),
            (Kind::Ordinary, 503, 4),
        ] {
            for _ in 0..count {
                tally.side(kind).sent += 1;
                tally.side(kind).answered(status, Duration::from_micros(250));
            }
        }
        tally.attack.sent += 3;
        tally.attack.timeouts += 1;
        tally.attack.broken += 1;
        let asked = Asked {
            url: "http://127.0.0.1/{id}".to_owned(),
            profile: "random",
            seed: 42,
            connections: 2,
            rate: None,
        };
        Report::new(asked, ended, Duration::from_millis(500), &tally, None, Vec::new())
    }

    #[test]
    fn numbers_add_up() {
        let report = sample(Ended::Finished);
        assert_eq!((report.attack.requests, report.attack.answered), (1505, 1502));
        assert_eq!((report.ordinary.requests, report.ordinary.answered), (157, 157));
        assert!((report.requests_per_second - 1659.0 * 2.0).abs() < 1e-6);
        assert_eq!((report.ordinary_non_2xx, report.ordinary_404, report.attack_2xx), (7, 3, 2));
        let errors = Errors { connect: 1, transport: 1, timeouts: 1, unanswered: 1 };
        assert_eq!(report.errors, errors);
        assert_eq!(report.warnings.len(), 1);
    }

    #[test]
    fn json_has_the_promised_shape() {
        let json = serde_json::to_value(sample(Ended::Interrupt)).unwrap();
        assert_eq!(json["seed"], 42);
        assert_eq!(json["attack"]["statuses"]["404"], 1500);
        assert_eq!(json["attack"]["latency_us"]["p999"], 250);
        assert_eq!(json["interrupted"], true);
        assert_eq!(json["ended"], "interrupt");
        assert!(json["guard"].is_null() && json["rate"].is_null());
    }

    #[test]
    fn exit_codes() {
        assert_eq!(sample(Ended::Finished).exit_code(false), 0);
        assert_eq!(sample(Ended::Finished).exit_code(true), 1);
        assert_eq!(sample(Ended::Duration).exit_code(true), 1);
        assert_eq!(sample(Ended::GaveUp).exit_code(false), 1);
        assert_eq!(sample(Ended::Interrupt).exit_code(true), 130);
    }
}
