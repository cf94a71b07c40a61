//! A keyed permutation of a range of integers, computed without memory.

/// Rounds of the Feistel network. Four make a permutation that looks random; two more cost
/// nanoseconds and leave a margin for the simple round function.
const ROUNDS: usize = 6;

/// A keyed bijection of `0..size`: distinct inputs give distinct outputs, without memory.
///
/// A balanced Feistel network over the next even power of two; outputs beyond `size` are sent
/// through again until they fall inside (cycle walking), at most four times on average.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    size: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// A permutation of `0..size`, for `size` from 1 to 2^62; others are clamped.
    pub(crate) fn new(size: u64, key: u64) -> Self {
        let size = size.clamp(1, 1 << 62);
        let bits = (size - 1).checked_ilog2().map_or(1, |log| log + 1);
        let mut keys = [0; ROUNDS];
        for (round, slot) in (0..).zip(&mut keys) {
            *slot = splitmix64(key ^ splitmix64(round));
        }
        Self { size, half_bits: bits.div_ceil(2), keys }
    }

    /// Where `index` goes. `index` must be below the size.
    pub(crate) fn get(&self, index: u64) -> u64 {
        debug_assert!(index < self.size);
        let mut at = self.network(index);
        while at >= self.size {
            at = self.network(at);
        }
        at
    }

    fn network(&self, input: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (input >> self.half_bits, input & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (splitmix64(right ^ key) & mask));
        }
        (left << self.half_bits) | right
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014) after one step of its counter.
pub(crate) fn splitmix64(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// The network run backwards, to show that it can be.
    fn undo(permutation: &Permutation, output: u64) -> u64 {
        let mask = (1 << permutation.half_bits) - 1;
        let (mut left, mut right) = (output >> permutation.half_bits, output & mask);
        for key in permutation.keys.iter().rev() {
            (left, right) = (right ^ (splitmix64(left ^ key) & mask), left);
        }
        (left << permutation.half_bits) | right
    }

    proptest! {
        #[test]
        fn every_small_permutation_reaches_everything_once(size in 1u64..3000, key: u64) {
            let permutation = Permutation::new(size, key);
            let reached: HashSet<u64> = (0..size).map(|index| permutation.get(index)).collect();
            prop_assert_eq!(reached.len() as u64, size);
            prop_assert!(reached.iter().all(|&at| at < size));
        }

        #[test]
        fn the_large_network_can_be_undone(key: u64, index in 0..1_u64 << 62) {
            let permutation = Permutation::new(1 << 62, key);
            prop_assert_eq!(undo(&permutation, permutation.network(index)), index);
        }
    }
}
