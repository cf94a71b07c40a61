//! Measures the filter beside its peers, and prints the tables of the README.
//!
//! `cargo bench -p bloomgate-filter [-- ITEMS…]`, by default with 1, 10 and 100 million items, which
//! takes about five minutes and 4 GB. Everything is measured in the same process, in turns, and told
//! as the median of the turns: compare rows of one run, never of two.

#![expect(clippy::expect_used, reason = "a benchmark that can't begin should say why and end")]

mod contenders;
mod keys;
mod report;
mod timing;

use contenders::Contender;
use keys::Keys;
use report::{InsertRow, LookupRow, Report};
use timing::Samples;

/// The false-positive rate that everybody is sized for.
const RATE: f64 = 0.001;

/// Keys that are asked for in one turn.
const PROBES: usize = 1_000_000;

/// Keys of a turn of isolated lookups, which are slow.
const ISOLATED_PROBES: usize = 200_000;

/// Turns that each contender gets.
const TURNS: usize = 11;

fn main() {
    let sizes = sizes();
    let mut report = Report::default();
    for &items in &sizes {
        eprintln!("{items} items: filling");
        report.inserts.extend(inserts(items));
        let keys = Keys::new(items, PROBES);
        let contenders = contenders::all(items);
        eprintln!("{items} items: asking");
        report.lookups.extend(lookups(items, &keys, &contenders));
    }
    report.space = contenders::space();
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
    for _ in 0..TURNS {
        for (contender, row) in contenders.iter().zip(&mut rows) {
            // The caches still hold the one before.
            (contender.ask)(&keys.present);
            let (ns, passed) = (contender.ask)(&keys.absent);
            row.absent.push(ns);
            row.passed = passed as f64 / keys.absent.len() as f64;
            let (ns, passed) = (contender.ask)(&keys.present);
            row.present.push(ns);
            assert!(contender.is_bound || passed == keys.present.len(), "{}", contender.name);
            if let Some(ask_one) = &contender.ask_isolated {
                row.isolated.push(ask_one(&keys.absent[..ISOLATED_PROBES]));
            }
        }
    }
    rows
}

fn inserts(items: usize) -> Vec<InsertRow> {
    /// Keys that a filter takes before it is the next one's turn.
    const PIECE: usize = 100_000;
    let rounds = (5_000_000 / items).clamp(1, 5);
    let mut rows: Vec<InsertRow> = Vec::new();
    for _ in 0..rounds {
        let mut fillers = contenders::fillers(items);
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
