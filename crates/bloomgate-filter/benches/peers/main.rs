//! Measures the filter beside its peers, and prints the tables of the README.
//!
//! `cargo bench -p bloomgate-filter [-- ITEMS…]`, by default with 1, 10 and 100 million items, which
//! takes about five minutes and 4 GB. Everything is measured in the same process, in short turns that
//! follow one another. Times are medians of the turns, ratios are medians of the turns' ratios: compare
//! within one run, never between two.

#![expect(clippy::expect_used, reason = "a benchmark that can't begin should say why and end")]

mod filters;
mod hashes;
mod keys;
mod report;
mod timing;

use filters::Contender;
use keys::Keys;
use report::{InsertRow, LookupRow, Report};
use timing::Samples;

/// The false-positive rate that everybody is sized for.
const RATE: f64 = 0.001;

/// Turns that each contender gets. Short ones, so that the noise of a shared machine meets the
/// contenders of a turn alike.
const TURNS: usize = 41;

/// Keys of a turn: enough to touch each line of the smallest filter several times.
const PROBES: usize = 200_000;

/// Keys of a turn of isolated lookups, which are slow.
const ISOLATED_PROBES: usize = 50_000;

fn main() {
    let sizes = sizes();
    let mut report = Report::default();
    for &items in &sizes {
        eprintln!("{items} items: filling");
        report.inserts.extend(inserts(items));
        let keys = Keys::new(items, TURNS * PROBES);
        let contenders = filters::all(items);
        eprintln!("{items} items: asking");
        report.lookups.extend(lookups(items, &keys, &contenders));
    }
    report.space = filters::space();
    report.hashes = hashes::hashes(TURNS);
    print!("{report}");
}

/// The sizes on the command line, after the flags that cargo adds.
fn sizes() -> Vec<usize> {
    let given: Vec<usize> =
        std::env::args().skip(1).filter_map(|arg| arg.replace('_', "").parse().ok()).collect();
    if given.is_empty() { vec![1_000_000, 10_000_000, 100_000_000] } else { given }
}

fn lookups(items: usize, keys: &Keys, contenders: &[Contender]) -> Vec<LookupRow> {
    let mut rows: Vec<_> = contenders
        .iter()
        .map(|contender| LookupRow {
            items,
            name: contender.name,
            absent: Samples::default(),
            present: Samples::default(),
            isolated: Samples::default(),
            bits_per_key: contender.bits_per_key,
            passed: 0.0,
        })
        .collect();
    for (absent, present) in keys.absent.chunks(PROBES).zip(keys.present.chunks(PROBES)) {
        for (contender, row) in contenders.iter().zip(&mut rows) {
            // The caches still hold the one before.
            (contender.ask)(present);
            let (ns, passed) = (contender.ask)(absent);
            row.absent.push(ns);
            row.passed += passed as f64 / keys.absent.len() as f64;
            let (ns, passed) = (contender.ask)(present);
            row.present.push(ns);
            assert!(contender.is_bound || passed == present.len(), "{}", contender.name);
            if let Some(ask_one) = &contender.ask_isolated {
                row.isolated.push(ask_one(&absent[..ISOLATED_PROBES]));
            }
        }
    }
    rows
}

fn inserts(items: usize) -> Vec<InsertRow> {
    /// Keys that a filter takes before it is the next one's turn.
    const PIECE: usize = 100_000;
    let rounds = (10_000_000 / items).clamp(1, 10);
    let mut rows: Vec<InsertRow> = Vec::new();
    for _ in 0..rounds {
        let mut fillers = filters::fillers(items);
        rows.resize_with(fillers.len(), InsertRow::default);
        for from in (0..items).step_by(PIECE) {
            let piece = keys::inserted(from..(from + PIECE).min(items));
            for (filler, row) in fillers.iter_mut().zip(&mut rows) {
                row.items = items;
                row.name = filler.name;
                row.ns.push((filler.fill)(&piece));
            }
        }
    }
    rows
}
