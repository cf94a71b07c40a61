//! Time measurement in nanoseconds per key.

use std::hint::black_box;
use std::time::Instant;

/// One measurement per round.
#[derive(Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn push(&mut self, ns: f64) {
        self.0.push(ns);
    }

    /// The median, `None` without rounds.
    pub(crate) fn median(&self) -> Option<f64> {
        median(self.0.clone())
    }

    /// The median of the ratios to `other` per round.
    pub(crate) fn ratio(&self, other: &Self) -> Option<f64> {
        median(self.0.iter().zip(&other.0).map(|(own, other)| own / other).collect())
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The time of `work` for `keys` keys, in nanoseconds per key, and its result.
pub(crate) fn per_key<R>(keys: usize, work: impl FnOnce() -> R) -> (f64, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_nanos() as f64 / keys as f64, result)
}

/// Looks up one key after another; the processor can overlap the lookups, as in a server. Returns
/// the nanoseconds per key, and how many keys passed.
pub(crate) fn lookup(keys: &[u64], contains: impl Fn(u64) -> bool) -> (f64, usize) {
    per_key(keys.len(), || keys.iter().filter(|key| black_box(contains(**key))).count())
}

/// The same, but a lookup can't start before the result of the previous one is known.
pub(crate) fn lookup_isolated(keys: &[u64], contains: impl Fn(u64) -> bool) -> f64 {
    let nothing = black_box(0_u64);
    // A byte instead of a `bool`, which the compiler could turn into a branch; its prediction would
    // let the next lookup start early.
    let lookup = |last: u8, key: &u64| {
        let key = key ^ (u64::from(last) & nothing);
        black_box(u8::from(contains(key)))
    };
    per_key(keys.len(), || keys.iter().fold(0, lookup)).0
}
