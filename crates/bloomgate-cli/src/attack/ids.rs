//! Which ids are asked for: all decided by one seed.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Zipf};

use super::args::IdRange;

/// All ids of the random profile lie above this one.
pub(crate) const RANDOM_FLOOR: u64 = 1 << 40;
/// How many ids the random profile can draw; the largest is below 2^63.
pub(crate) const RANDOM_SIZE: u64 = 1 << 62;

/// Rounds of the Feistel network. Four make a permutation that looks random; two more cost
/// nanoseconds and leave a margin for the simple round function.
const ROUNDS: usize = 6;

/// Parts of a run that draw from the same seed and must not repeat one another.
const FOR_ATTACK: u64 = 0x61;
const FOR_RANKS: u64 = 0x72;
const FOR_DRAWS: u64 = 0x64;

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
fn splitmix64(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A key for one part of the run.
fn derive(seed: u64, part: u64) -> u64 {
    splitmix64(splitmix64(seed) ^ part)
}

/// Ids that should not exist.
#[derive(Clone, Debug)]
pub(crate) enum AttackIds {
    /// Distinct, without order, from above 2^40 to below 2^63.
    Random(Permutation),
    /// Upward from the first.
    Sequential(u64),
}

impl AttackIds {
    /// Random ids under `seed`.
    pub(crate) fn random(seed: u64) -> Self {
        Self::Random(Permutation::new(RANDOM_SIZE, derive(seed, FOR_ATTACK)))
    }

    /// The id of the attack request number `index`, which is below 2^62.
    pub(crate) fn get(&self, index: u64) -> u64 {
        match self {
            AttackIds::Random(permutation) => RANDOM_FLOOR + 1 + permutation.get(index),
            AttackIds::Sequential(first) => first + index,
        }
    }
}

/// Ids that exist, some far more popular than others.
///
/// Ranks follow a Zipf law; a permutation decides which id has which rank, since in real tables
/// popularity does not follow the order of ids.
#[derive(Clone, Debug)]
pub(crate) struct LegitIds {
    first: u64,
    count: u64,
    ranks: Permutation,
    law: Zipf<f64>,
    seed: u64,
}

impl LegitIds {
    /// Ids in `range` with the given exponent; `None` if the exponent is negative or no number.
    pub(crate) fn new(range: IdRange, exponent: f64, seed: u64) -> Option<Self> {
        let count = (range.last - range.first).saturating_add(1).min(1 << 62);
        Some(Self {
            first: range.first,
            count,
            ranks: Permutation::new(count, derive(seed, FOR_RANKS)),
            law: Zipf::new(count as f64, exponent).ok()?,
            seed: derive(seed, FOR_DRAWS),
        })
    }

    /// The id of the legit request number `index`: the same for the same seed, whichever
    /// connection asks.
    pub(crate) fn get(&self, index: u64) -> u64 {
        let mut random = SmallRng::seed_from_u64(self.seed ^ splitmix64(index));
        let rank = self.law.sample(&mut random) as u64;
        // The law works in floating point, which may round beyond either end.
        self.first + self.ranks.get(rank.clamp(1, self.count) - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

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
        fn the_large_network_can_be_undone(key: u64, index in 0..RANDOM_SIZE) {
            let permutation = Permutation::new(RANDOM_SIZE, key);
            prop_assert_eq!(undo(&permutation, permutation.network(index)), index);
        }

        #[test]
        fn random_ids_lie_above_the_floor(seed: u64, index in 0..RANDOM_SIZE) {
            let id = AttackIds::random(seed).get(index);
            prop_assert!(id > RANDOM_FLOOR && id <= i64::MAX as u64);
        }

        #[test]
        fn random_ids_are_distinct(seed: u64, from in 0..RANDOM_SIZE - 5000) {
            let ids = AttackIds::random(seed);
            let drawn: HashSet<u64> = (from..from + 5000).map(|index| ids.get(index)).collect();
            prop_assert_eq!(drawn.len(), 5000);
        }

        #[test]
        fn legit_ids_stay_in_range(
            first in 0u64..1 << 50,
            count in 1u64..1 << 50,
            exponent in 0.0..20.0f64,
            seed: u64,
            index: u64,
        ) {
            let range = IdRange { first, last: first + count - 1 };
            let id = LegitIds::new(range, exponent, seed).unwrap().get(index);
            prop_assert!((range.first..=range.last).contains(&id));
        }
    }

    #[test]
    fn the_widest_range_is_served() {
        let range = IdRange { first: 0, last: i64::MAX as u64 };
        let ids = LegitIds::new(range, 1.0, 1).unwrap();
        assert!((0..1000).all(|index| ids.get(index) <= range.last));
    }

    #[test]
    fn random_ids_are_spread_over_the_whole_range() {
        let ids = AttackIds::random(7);
        let mut sixteenths = [0u32; 16];
        for index in 0..16_000 {
            sixteenths[((ids.get(index) - RANDOM_FLOOR - 1) >> 58) as usize] += 1;
        }
        // 1,000 each are expected with a deviation of 31; the seed is fixed.
        assert!(sixteenths.iter().all(|n| (850..1150).contains(n)), "{sixteenths:?}");
    }

    #[test]
    fn a_seed_decides_everything() {
        let range = IdRange { first: 1, last: 1000 };
        let draw = |seed| -> Vec<u64> {
            let (attack, legit) =
                (AttackIds::random(seed), LegitIds::new(range, 1.0, seed).unwrap());
            (0..100).flat_map(|index| [attack.get(index), legit.get(index)]).collect()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn popularity_follows_the_exponent() {
        let range = IdRange { first: 1, last: 100 };
        let most = |exponent| {
            let ids = LegitIds::new(range, exponent, 3).unwrap();
            let mut counts: HashMap<u64, u32> = HashMap::new();
            for index in 0..100_000 {
                *counts.entry(ids.get(index)).or_default() += 1;
            }
            counts.into_values().max().unwrap()
        };
        // The first rank has 1/H(100) = 19.3 % at exponent 1, and 1 % at exponent 0.
        assert!((18_000..21_000).contains(&most(1.0)));
        assert!(most(0.0) < 1_300);
    }

    #[test]
    fn sequential_ids_count_upward() {
        let ids = AttackIds::Sequential(1001);
        assert_eq!((0..3).map(|index| ids.get(index)).collect::<Vec<_>>(), [1001, 1002, 1003]);
    }
}
