//! The report as text.

use std::fmt::{self, Display, Formatter};

use indicatif::HumanCount;

use super::guard::change::GuardChange;
use super::report::{EndReason, KindReport, Report};
use super::units::{per_second, time};

/// Displays a report as a table, with a line break at the end.
#[derive(Debug)]
pub(crate) struct Table<'a>(pub(crate) &'a Report);

impl Display for Table<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let report = self.0;
        let settings = &report.settings;
        writeln!(out, "{}", settings.url)?;
        match (settings.ids.as_str(), settings.profile) {
            ("uuid", _) => write!(out, "random UUIDs")?,
            (_, Some(profile)) => write!(out, "{profile} integer ids")?,
            (file, None) => write!(out, "ids of {file}")?,
        }
        write!(out, ", seed {}, {} connections, ", settings.seed, settings.connections)?;
        match settings.rate {
            Some(rate) => writeln!(out, "open loop at {}/s", HumanCount(rate))?,
            None => writeln!(out, "closed loop")?,
        }
        let answered = report.attack.answered + report.legit.answered;
        writeln!(
            out,
            "\n{} requests answered in {:.2} s: {}{}\n",
            HumanCount(answered),
            report.elapsed_seconds,
            per_second(report.requests_per_second),
            match report.ended {
                EndReason::Finished => "",
                EndReason::Duration => " (ended by --duration)",
                EndReason::Interrupt => " (interrupted)",
                EndReason::GaveUp => " (gave up)",
            }
        )?;
        writeln!(
            out,
            "{:<9}{:>13}{:>10}{:>10}{:>10}{:>10}  statuses",
            "", "requests", "p50", "p99", "p99.9", "max"
        )?;
        kind_row(out, "attack", &report.attack)?;
        if report.legit.requests > 0 {
            kind_row(out, "legit", &report.legit)?;
        }
        let errors = &report.errors;
        writeln!(
            out,
            "\nerrors   {} failed connects, {} lost connections, {} timeouts, {} unanswered at the end",
            HumanCount(errors.connect),
            HumanCount(errors.transport),
            HumanCount(errors.timeouts),
            HumanCount(errors.unanswered),
        )?;
        match &report.guard {
            Some(change) => guard(out, change)?,
            None if settings.guard_url.is_none() => {
                writeln!(out, "guard    not read; --guard-url counts refusals and loads")?;
            }
            None => {}
        }
        if report.legit_non_2xx > 0 {
            writeln!(
                out,
                "\nLEGIT NON-2XX: {} of {} legit requests.",
                HumanCount(report.legit_non_2xx),
                HumanCount(report.legit.answered),
            )?;
            if report.legit_404 > 0 {
                writeln!(
                    out,
                    "{} of them are 404: false refusals, if these ids exist.",
                    HumanCount(report.legit_404)
                )?;
            }
        }
        for warning in &report.warnings {
            writeln!(out, "\nwarning: {warning}")?;
        }
        Ok(())
    }
}

fn kind_row(out: &mut Formatter<'_>, name: &str, kind: &KindReport) -> fmt::Result {
    write!(out, "{name:<9}{:>13}", HumanCount(kind.requests).to_string())?;
    match kind.latency_us {
        Some(latency) => {
            for micros in [latency.p50, latency.p99, latency.p999, latency.max] {
                write!(out, "{:>10}", time(micros))?;
            }
        }
        None => write!(out, "{:>10}{:>10}{:>10}{:>10}", "-", "-", "-", "-")?,
    }
    write!(out, " ")?;
    for (status, count) in &kind.statuses {
        write!(out, " {status}: {}", HumanCount(*count))?;
    }
    writeln!(out)
}

fn guard(out: &mut Formatter<'_>, change: &GuardChange) -> fmt::Result {
    let counts = [
        (change.absent_loads, change.absent_loads_per_1000, "absent loads"),
        (change.refused, change.refused_per_1000, "refusals"),
    ];
    for (index, (count, per_1000, name)) in counts.into_iter().enumerate() {
        let heading = if index == 0 { "guard" } else { "" };
        write!(out, "{heading:<8} {} {name}", HumanCount(count))?;
        match per_1000 {
            Some(per_1000) => writeln!(out, ", {per_1000:.3} per 1,000 attack requests")?,
            None => writeln!(out)?,
        }
    }
    let others = [
        ("loads in all", change.loads),
        ("answers by sentinels", change.null_hits),
        ("load errors", change.errors),
        ("shed", change.shed),
        ("load timeouts", change.timeouts),
    ];
    let others = others.map(|(name, count)| format!("{} {name}", HumanCount(count)));
    writeln!(out, "         {}", others.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::guard::change;
    use crate::attack::guard::status::GuardCounts;
    use crate::attack::report::tests::sample;

    #[test]
    fn refusals_of_legit_ids_stand_out() {
        let table = Table(&sample(EndReason::Interrupt)).to_string();
        for part in [
            "random integer ids, seed 42, 2 connections, closed loop",
            "1,659 requests answered in 0.50 s: 3,318/s (interrupted)",
            " 200: 2 404: 1,500\n",
            "errors   1 failed connects, 1 lost connections, 1 timeouts, 1 unanswered",
            "LEGIT NON-2XX: 7 of 157 legit requests.\n3 of them are 404: false refusals",
            "warning: 2 attack requests were answered 2xx",
        ] {
            assert!(table.contains(part), "{part:?} is missing from\n{table}");
        }
    }

    #[test]
    fn guard_counters_are_shown_with_rates() {
        let mut report = sample(EndReason::Finished);
        let without = Table(&report).to_string();
        assert!(without.contains("guard    not read; --guard-url counts"), "{without}");
        let counts = GuardCounts {
            absent_loads: 3,
            refused: 1497,
            loads: 150,
            null_hits: 2,
            ..GuardCounts::default()
        };
        report.guard = Some(change::tests::change(counts, 1500, 0));
        let table = Table(&report).to_string();
        assert!(table.contains("3 absent loads, 2.000 per 1,000 attack requests"), "{table}");
        assert!(table.contains("1,497 refusals, 998.000 per 1,000"), "{table}");
        let others =
            "150 loads in all, 2 answers by sentinels, 0 load errors, 0 shed, 0 load timeouts\n";
        assert!(table.contains(others), "{table}");
    }

    #[test]
    fn a_guard_that_saw_no_attack_request_has_no_rate() {
        let mut report = sample(EndReason::Finished);
        report.guard = Some(change::tests::change(GuardCounts::default(), 1500, 0));
        let table = Table(&report).to_string();
        assert!(table.contains("guard    0 absent loads\n"), "{table}");
        assert!(!table.contains("per 1,000"), "{table}");
    }

    #[test]
    fn the_kind_of_ids_is_named() {
        for (ids, profile, says) in [
            ("int", Some("sequential"), "sequential integer ids, seed 42"),
            ("uuid", None, "random UUIDs, seed 42"),
            ("ids.txt", None, "ids of ids.txt, seed 42"),
        ] {
            let mut report = sample(EndReason::Finished);
            (report.settings.ids, report.settings.profile) = (ids.to_owned(), profile);
            let table = Table(&report).to_string();
            assert!(table.contains(says), "{table}");
        }
    }
}
