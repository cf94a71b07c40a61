//! Nanoseconds a key.

use std::hint::black_box;
use std::time::Instant;

/// What the turns took.
#[derive(Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn push(&mut self, ns: f64) {
        self.0.push(ns);
    }

    /// The median, or nothing if there were no turns.
    pub(crate) fn median(&self) -> Option<f64> {
        median(self.0.clone())
    }

    /// The median of the turns' ratios to `other`.
    pub(crate) fn ratio(&self, other: &Self) -> Option<f64> {
        median(self.0.iter().zip(&other.0).map(|(own, other)| own / other).collect())
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Time for `keys` keys, in nanoseconds a key.
pub(crate) fn per_key<R>(keys: usize, work: impl FnOnce() -> R) -> (f64, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_nanos() as f64 / keys as f64, result)
}

/// Asks for one key after another; the processor may work on several at once, as it does in a
/// server. Returns the time a key, and how many passed.
pub(crate) fn ask(keys: &[u64], contains: impl Fn(u64) -> bool) -> (f64, usize) {
    per_key(keys.len(), || keys.iter().filter(|key| black_box(contains(**key))).count())
}

/// The same, but a lookup can't begin before the answer to the last one is there.
pub(crate) fn ask_isolated(keys: &[u64], contains: impl Fn(u64) -> bool) -> f64 {
    let nothing = black_box(0_u64);
    // A byte of unknown value: of a `bool` the compiler could make a branch, whose prediction would
    // let the next lookup begin early.
    let ask = |last: u8, key: &u64| {
        let key = key ^ (u64::from(last) & nothing);
        black_box(u8::from(contains(key)))
    };
    per_key(keys.len(), || keys.iter().fold(0, ask)).0
}
