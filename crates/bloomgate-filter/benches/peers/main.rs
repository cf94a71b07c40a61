//! Benchmarks of the Bloom filter against other crates, printed as Markdown tables.
//!
//! `cargo bench -p bloomgate-filter [-- ITEMS…]`, by default with 1, 10 and 100 million items,
//! which takes about five minutes and 4 GB. Everything is measured in one process, in short
//! alternating rounds. Times are medians of the rounds, ratios are medians of the ratios per round:
//! compare within one run, never between two.

#![expect(clippy::expect_used, reason = "a benchmark that can't start ends with the reason")]

mod filters;
mod hashes;
mod keys;
mod report;
mod timing;

use filters::MeasuredFilter;
use keys::Keys;
use report::{InsertRow, LookupRow, Report};
use timing::Samples;

/// The false-positive rate that all filters are sized for.
const RATE: f64 = 0.001;

/// Rounds per filter. Rounds are short, so that the noise of a shared machine affects all filters
/// of a round alike.
const ROUNDS: usize = 41;

/// Keys per round: enough to access each line of the smallest filter several times.
const PROBES: usize = 200_000;

/// Keys per round of isolated lookups, which are slow.
const ISOLATED_PROBES: usize = 50_000;

fn main() {
    let sizes = sizes();
    let mut report = Report::default();
    for &items in &sizes {
        eprintln!("{items} items: filling");
        report.inserts.extend(inserts(items));
        let keys = Keys::new(items, ROUNDS * PROBES);
        let filters = filters::all(items);
        eprintln!("{items} items: looking up");
        report.lookups.extend(lookups(items, &keys, &filters));
    }
    report.space = filters::space();
    report.hashes = hashes::hashes(ROUNDS);
    print!("{report}");
}

/// The sizes on the command line, after the flags that cargo adds.
fn sizes() -> Vec<usize> {
    let given: Vec<usize> =
        std::env::args().skip(1).filter_map(|arg| arg.replace('_', "").parse().ok()).collect();
    if given.is_empty() { vec![1_000_000, 10_000_000, 100_000_000] } else { given }
}

fn lookups(items: usize, keys: &Keys, filters: &[MeasuredFilter]) -> Vec<LookupRow> {
    let mut rows: Vec<_> = filters
        .iter()
        .map(|filter| LookupRow {
            items,
            name: filter.name,
            absent: Samples::default(),
            present: Samples::default(),
            isolated: Samples::default(),
            bits_per_key: filter.bits_per_key,
            passed: 0.0,
        })
        .collect();
    for (absent, present) in keys.absent.chunks(PROBES).zip(keys.present.chunks(PROBES)) {
        for (filter, row) in filters.iter().zip(&mut rows) {
            // Warm-up: the caches still hold the previous filter.
            (filter.lookup)(present);
            let (ns, passed) = (filter.lookup)(absent);
            row.absent.push(ns);
            row.passed += passed as f64 / keys.absent.len() as f64;
            let (ns, passed) = (filter.lookup)(present);
            row.present.push(ns);
            assert!(filter.is_bound || passed == present.len(), "{}", filter.name);
            if let Some(lookup_one) = &filter.lookup_isolated {
                row.isolated.push(lookup_one(&absent[..ISOLATED_PROBES]));
            }
        }
    }
    rows
}

fn inserts(items: usize) -> Vec<InsertRow> {
    /// Keys inserted into a filter per round.
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
