//! The report: Markdown tables.

use std::fmt;

use crate::filters::{AES, AES_BATCH, FASTBLOOM_DEFAULT, FB, LINE, SIP, XXH3, XXH3_BATCH};
use crate::timing::Samples;

/// The lookups of one filter with one number of keys.
pub(crate) struct LookupRow {
    pub(crate) items: usize,
    pub(crate) name: &'static str,
    pub(crate) absent: Samples,
    pub(crate) present: Samples,
    pub(crate) isolated: Samples,
    pub(crate) bits_per_key: f64,
    /// The share of absent keys that passed.
    pub(crate) passed: f64,
}

/// The inserts into one filter.
#[derive(Default)]
pub(crate) struct InsertRow {
    pub(crate) items: usize,
    pub(crate) name: &'static str,
    pub(crate) ns: Samples,
}

/// Bits per key at one false-positive rate.
pub(crate) struct SpaceRow {
    pub(crate) rate: f64,
    pub(crate) bloom: f64,
    pub(crate) classic: f64,
}

/// One hash algorithm, with keys of eight bytes.
pub(crate) struct HashRow {
    pub(crate) name: &'static str,
    pub(crate) ns: Samples,
}

/// All measurements.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) lookups: Vec<LookupRow>,
    pub(crate) inserts: Vec<InsertRow>,
    pub(crate) space: Vec<SpaceRow>,
    pub(crate) hashes: Vec<HashRow>,
}

/// A ratio of two times, and its upper targets with 1, 10 and 100 million keys.
struct Ratio {
    title: &'static str,
    of: (Kind, &'static str),
    to: (Kind, &'static str),
    at_most: [f64; 3],
}

#[derive(Clone, Copy)]
enum Kind {
    Absent,
    Present,
    Insert,
}

/// For a ratio without a target.
const NO_TARGET: [f64; 3] = [f64::NAN; 3];

const RATIOS: [Ratio; 9] = [
    ratio("absent ÷ fastbloom", (Kind::Absent, XXH3), (Kind::Absent, FB), [0.25, 0.70, 0.50]),
    ratio("present ÷ fastbloom", (Kind::Present, XXH3), (Kind::Present, FB), [0.30, 0.40, 0.30]),
    ratio("absent ÷ bound", (Kind::Absent, XXH3), (Kind::Absent, LINE), [1.6, 1.4, 1.4]),
    ratio(
        "batched ÷ fastbloom",
        (Kind::Absent, XXH3_BATCH),
        (Kind::Absent, FB),
        [0.20, 0.22, 0.16],
    ),
    ratio(
        "AES-128 ÷ fastbloom's default hash",
        (Kind::Absent, AES),
        (Kind::Absent, FASTBLOOM_DEFAULT),
        [0.40, 0.80, 0.50],
    ),
    ratio(
        "SipHash-1-3 ÷ fastbloom's default hash",
        (Kind::Absent, SIP),
        (Kind::Absent, FASTBLOOM_DEFAULT),
        NO_TARGET,
    ),
    ratio(
        "AES-128 batched ÷ fastbloom's default hash",
        (Kind::Absent, AES_BATCH),
        (Kind::Absent, FASTBLOOM_DEFAULT),
        NO_TARGET,
    ),
    ratio("insert ÷ fastbloom", (Kind::Insert, XXH3), (Kind::Insert, FB), [0.45, 0.65, 0.50]),
    ratio(
        "insert batched ÷ fastbloom",
        (Kind::Insert, XXH3_BATCH),
        (Kind::Insert, FB),
        [0.45, 0.45, 0.25],
    ),
];

const fn ratio(
    title: &'static str,
    of: (Kind, &'static str),
    to: (Kind, &'static str),
    at_most: [f64; 3],
) -> Ratio {
    Ratio { title, of, to, at_most }
}

impl Report {
    fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<_> = self.lookups.iter().map(|row| row.items).collect();
        sizes.dedup();
        sizes
    }

    fn samples(&self, (kind, name): (Kind, &str), items: usize) -> Option<&Samples> {
        let lookup = || self.lookups.iter().find(|row| row.name == name && row.items == items);
        let insert = || self.inserts.iter().find(|row| row.name == name && row.items == items);
        match kind {
            Kind::Absent => lookup().map(|row| &row.absent),
            Kind::Present => lookup().map(|row| &row.present),
            Kind::Insert => insert().map(|row| &row.ns),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self.sizes();
        for items in &sizes {
            writeln!(f, "\n{} keys, sized for a rate of 0.1 %: ns a lookup\n", millions(*items))?;
            writeln!(f, "| | absent | present | absent, isolated | bits/key | measured rate |")?;
            writeln!(f, "|---|---|---|---|---|---|")?;
            for row in self.lookups.iter().filter(|row| row.items == *items) {
                let ns = |samples: &Samples| {
                    samples.median().map_or("–".to_owned(), |ns| format!("{ns:.1}"))
                };
                let (bits, rate) = if row.bits_per_key > 0.0 {
                    (format!("{:.2}", row.bits_per_key), format!("{:.3} %", row.passed * 100.0))
                } else {
                    ("–".to_owned(), "–".to_owned())
                };
                let (absent, present) = (ns(&row.absent), ns(&row.present));
                let isolated = ns(&row.isolated);
                writeln!(
                    f,
                    "| {} | {absent} | {present} | {isolated} | {bits} | {rate} |",
                    row.name
                )?;
            }
        }

        writeln!(f, "\nns an insert, one thread, while others could read\n")?;
        writeln!(
            f,
            "| |{}",
            sizes.iter().map(|n| format!(" {} |", millions(*n))).collect::<String>()
        )?;
        writeln!(f, "|---|{}", "---|".repeat(sizes.len()))?;
        let first = self.inserts.iter().take_while(|row| row.items == self.inserts[0].items);
        for name in first.map(|row| row.name) {
            write!(f, "| {name} |")?;
            for items in &sizes {
                let ns = self.samples((Kind::Insert, name), *items).and_then(Samples::median);
                write!(f, " {:.1} |", ns.unwrap_or(f64::NAN))?;
            }
            writeln!(f)?;
        }

        writeln!(f, "\nRatios, with their upper targets\n")?;
        writeln!(
            f,
            "| |{}",
            sizes.iter().map(|n| format!(" {} |", millions(*n))).collect::<String>()
        )?;
        writeln!(f, "|---|{}", "---|".repeat(sizes.len()))?;
        for ratio in &RATIOS {
            write!(f, "| {} |", ratio.title)?;
            for &items in &sizes {
                let pair = (self.samples(ratio.of, items), self.samples(ratio.to, items));
                let value = match pair {
                    (Some(of), Some(to)) => of.ratio(to),
                    _ => None,
                };
                match value {
                    Some(value) => write!(f, " {value:.2}{} |", target(ratio, items))?,
                    None => write!(f, " – |")?,
                }
            }
            writeln!(f)?;
        }

        writeln!(f, "\nBits a key, 10 million keys\n\n| rate | BloomFilter | classic | ratio |")?;
        writeln!(f, "|---|---|---|---|")?;
        for row in &self.space {
            let ratio = row.bloom / row.classic;
            let percent = row.rate * 100.0;
            writeln!(f, "| {percent} % | {:.2} | {:.2} | {ratio:.3} |", row.bloom, row.classic)?;
        }

        writeln!(f, "\nns a hash of a 64-bit id\n\n| hash | ns |\n|---|---|")?;
        for row in &self.hashes {
            writeln!(f, "| {} | {:.1} |", row.name, row.ns.median().unwrap_or(f64::NAN))?;
        }
        Ok(())
    }
}

fn millions(items: usize) -> String {
    format!("{} M", items as f64 / 1e6)
}

fn target(ratio: &Ratio, items: usize) -> String {
    let at = [1_000_000, 10_000_000, 100_000_000].into_iter().position(|size| size == items);
    let at_most = at.map_or(f64::NAN, |at| ratio.at_most[at]);
    if at_most.is_nan() { String::new() } else { format!(" (≤ {at_most:.2})") }
}
