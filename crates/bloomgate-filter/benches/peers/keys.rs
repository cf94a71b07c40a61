//! The benchmark keys: 64-bit ids in pseudorandom order.

use std::ops::Range;

/// The keys of the lookups.
pub(crate) struct Keys {
    /// Never inserted.
    pub(crate) absent: Vec<u64>,
    /// Inserted, in a different order.
    pub(crate) present: Vec<u64>,
}

impl Keys {
    pub(crate) fn new(items: usize, probes: usize) -> Self {
        let absent = (0..probes as u64).map(|at| id(at + (1 << 40))).collect();
        let present = (0..probes as u64).map(|at| id(id(at) % items as u64)).collect();
        Self { absent, present }
    }
}

/// The inserted ids with the numbers in `range`.
pub(crate) fn inserted(range: Range<usize>) -> Vec<u64> {
    range.map(|at| id(at as u64)).collect()
}

/// A pseudorandom bijection: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
fn id(at: u64) -> u64 {
    let mut z = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
