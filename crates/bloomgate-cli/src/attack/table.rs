//! The report as a person reads it.

use std::fmt::{self, Display, Formatter};

use indicatif::HumanCount;

use super::guard_status::GuardChange;
use super::report::{EndReason, KindReport, Report};

/// Displays a report as a table, with a line break at the end.
#[derive(Debug)]
pub(crate) struct Table<'a>(pub(crate) &'a Report);

impl Display for Table<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let report = self.0;
        let settings = &report.settings;
        writeln!(out, "{}", settings.url)?;
        write!(out, "{} ids, seed {}", settings.profile, settings.seed)?;
        write!(out, ", {} connections, ", settings.connections)?;
        match settings.rate {
            Some(rate) => writeln!(out, "open loop at {} requests/s", HumanCount(rate))?,
            None => writeln!(out, "closed loop")?,
        }
        let answered = report.attack.answered + report.legit.answered;
        writeln!(
            out,
            "\n{} requests answered in {:.2} s: {} requests/s{}\n",
            HumanCount(answered),
            report.elapsed_seconds,
            HumanCount(report.requests_per_second.round() as u64),
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
        if let Some(change) = &report.guard {
            guard(out, change)?;
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

fn kind_row(out: &mut Formatter<'_>, name: &str, side: &KindReport) -> fmt::Result {
    write!(out, "{name:<9}{:>13}", HumanCount(side.requests).to_string())?;
    match side.latency_us {
        Some(latency) => {
            for micros in [latency.p50, latency.p99, latency.p999, latency.max] {
                write!(out, "{:>10}", time(micros))?;
            }
        }
        None => write!(out, "{:>10}{:>10}{:>10}{:>10}", "-", "-", "-", "-")?,
    }
    write!(out, " ")?;
    for (status, count) in &side.statuses {
        write!(out, " {status}: {}", HumanCount(*count))?;
    }
    writeln!(out)
}

fn guard(out: &mut Formatter<'_>, change: &GuardChange) -> fmt::Result {
    writeln!(
        out,
        "guard    {} absent loads, {:.3} per 1,000 attack requests",
        HumanCount(change.absent_loads),
        change.absent_loads_per_1000
    )?;
    writeln!(
        out,
        "         {} refusals, {:.3} per 1,000 attack requests",
        HumanCount(change.refused),
        change.refused_per_1000
    )?;
    let known = [
        ("loads", change.loads),
        ("load errors", change.errors),
        ("shed", change.shed),
        ("load timeouts", change.timeouts),
    ];
    let known: Vec<String> = known
        .into_iter()
        .filter_map(|(name, count)| Some(format!("{} {name}", HumanCount(count?))))
        .collect();
    if !known.is_empty() {
        writeln!(out, "         {}", known.join(", "))?;
    }
    if change.enabled == Some(false) {
        writeln!(out, "         the guard is switched off")?;
    }
    Ok(())
}

/// Microseconds with a unit that keeps the number short.
fn time(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.2} ms", micros as f64 / 1e3),
        _ => format!("{:.2} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::report::tests::sample;

    #[test]
    fn refusals_of_legit_ids_stand_out() {
        let table = Table(&sample(EndReason::Interrupt)).to_string();
        for part in [
            "random ids, seed 42, 2 connections, closed loop",
            "1,659 requests answered in 0.50 s: 3,318 requests/s (interrupted)",
            " 200: 2 404: 1,500\n",
            "errors   1 failed connects, 1 lost connections, 1 timeouts, 1 unanswered",
            "LEGIT NON-2XX: 7 of 157 legit requests.\n3 of them are 404: false refusals",
            "warning: 2 attack requests were answered 2xx",
        ] {
            assert!(table.contains(part), "{part:?} is missing from\n{table}");
        }
    }

    #[test]
    fn the_guard_has_its_lines() {
        let mut report = sample(EndReason::Finished);
        assert!(!Table(&report).to_string().contains("guard"));
        report.guard = Some(GuardChange {
            absent_loads: 3,
            absent_loads_per_1000: 2.0,
            refused: 1497,
            refused_per_1000: 998.0,
            loads: Some(150),
            errors: None,
            shed: Some(0),
            timeouts: None,
            enabled: Some(false),
        });
        let table = Table(&report).to_string();
        assert!(table.contains("3 absent loads, 2.000 per 1,000 attack requests"), "{table}");
        assert!(table.contains("1,497 refusals, 998.000 per 1,000"), "{table}");
        assert!(table.contains("150 loads, 0 shed\n"), "{table}");
        assert!(table.contains("switched off"), "{table}");
    }

    #[test]
    fn times_have_units() {
        assert_eq!(time(999), "999 µs");
        assert_eq!(time(1_000), "1.00 ms");
        assert_eq!(time(2_500_000), "2.50 s");
    }
}
