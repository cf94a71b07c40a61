//! The ids of a run's requests: drawn under one seed, or read from a file.

pub(crate) mod file;
pub(crate) mod id;
pub(crate) mod permutation;
pub(crate) mod selection;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Zipf};
use uuid::Uuid;

use crate::attack::args::IdRange;
use crate::attack::ids::file::IdFile;
use crate::attack::ids::id::Id;
use crate::attack::ids::permutation::{Permutation, splitmix64};

/// All ids of the random profile lie above this one.
pub(crate) const RANDOM_FLOOR: u64 = 1 << 40;
/// How many ids the random profile can draw; the largest is below 2^63.
pub(crate) const RANDOM_SIZE: u64 = 1 << 62;

/// Parts of a run that draw from the same seed and must not repeat one another.
const FOR_ATTACK: u64 = 0x61;
const FOR_RANKS: u64 = 0x72;
const FOR_DRAWS: u64 = 0x64;
const FOR_UUIDS: u64 = 0x75;

/// A key for one part of the run.
fn derive(seed: u64, part: u64) -> u64 {
    splitmix64(splitmix64(seed) ^ part)
}

/// Ids that should not exist.
#[derive(Clone, Debug)]
pub(crate) enum AttackIds {
    /// Distinct integers without order, from above 2^40 to below 2^63.
    Random(Permutation),
    /// Consecutive integers from this one.
    Sequential(u64),
    /// Distinct random UUIDs of version 4.
    Uuids {
        /// 62 of the 122 random bits, which make them distinct.
        low: Permutation,
        /// Key of the other bits.
        key: u64,
    },
    /// In the order of a file.
    Listed(IdFile),
}

impl AttackIds {
    /// Random integers under `seed`.
    pub(crate) fn random(seed: u64) -> Self {
        Self::Random(Permutation::new(RANDOM_SIZE, derive(seed, FOR_ATTACK)))
    }

    /// Random UUIDs under `seed`.
    pub(crate) fn uuids(seed: u64) -> Self {
        let low = Permutation::new(RANDOM_SIZE, derive(seed, FOR_ATTACK));
        Self::Uuids { low, key: derive(seed, FOR_UUIDS) }
    }

    /// The id of the attack request number `index`, which is below 2^62.
    pub(crate) fn get(&self, index: u64) -> Id {
        match self {
            AttackIds::Random(permutation) => Id::Int(RANDOM_FLOOR + 1 + permutation.get(index)),
            AttackIds::Sequential(first) => Id::Int(first + index),
            AttackIds::Uuids { low, key } => {
                Id::Uuid(uuid(key ^ splitmix64(index), low.get(index)))
            }
            AttackIds::Listed(file) => file.get(index),
        }
    }
}

/// A UUID of version 4 that keeps all bits of `low` below 2^62.
fn uuid(high: u64, low: u64) -> Uuid {
    let bits = (u128::from(splitmix64(high)) << 64) | u128::from(low);
    uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
}

/// Where the ids of legit requests come from.
#[derive(Clone, Debug)]
pub(crate) enum ExistingIds {
    /// All integers of a range.
    Range(IdRange),
    /// All ids of a file.
    File(IdFile),
}

impl ExistingIds {
    fn count(&self) -> u64 {
        match self {
            Self::Range(range) => (range.last - range.first).saturating_add(1).min(1 << 62),
            Self::File(file) => file.len(),
        }
    }

    fn get(&self, index: u64) -> Id {
        match self {
            Self::Range(range) => Id::Int(range.first + index),
            Self::File(file) => file.get(index),
        }
    }
}

/// Ids that exist, some far more popular than others.
///
/// Ranks follow a Zipf law; a permutation decides which id has which rank, since in real tables
/// popularity does not follow the order of ids.
#[derive(Clone, Debug)]
pub(crate) struct LegitIds {
    ids: ExistingIds,
    count: u64,
    ranks: Permutation,
    law: Zipf<f64>,
    seed: u64,
}

impl LegitIds {
    /// Draws from `ids` with the given exponent; `None` if the exponent is negative or NaN.
    pub(crate) fn new(ids: ExistingIds, exponent: f64, seed: u64) -> Option<Self> {
        let count = ids.count();
        Some(Self {
            ids,
            count,
            ranks: Permutation::new(count, derive(seed, FOR_RANKS)),
            law: Zipf::new(count as f64, exponent).ok()?,
            seed: derive(seed, FOR_DRAWS),
        })
    }

    /// The id of the legit request number `index`: the same for the same seed, whichever
    /// connection sends it.
    pub(crate) fn get(&self, index: u64) -> Id {
        let mut random = SmallRng::seed_from_u64(self.seed ^ splitmix64(index));
        let rank = self.law.sample(&mut random) as u64;
        // The law works in floating point, which may round beyond either end.
        self.ids.get(self.ranks.get(rank.clamp(1, self.count) - 1))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::*;

    use super::*;

    fn int(id: Id) -> u64 {
        match id {
            Id::Int(id) => id,
            id => panic!("{id:?} is not an integer"),
        }
    }

    fn legit(range: IdRange, exponent: f64, seed: u64) -> LegitIds {
        LegitIds::new(ExistingIds::Range(range), exponent, seed).unwrap()
    }

    proptest! {
        #[test]
        fn random_ids_lie_above_the_floor(seed: u64, index in 0..RANDOM_SIZE) {
            let id = int(AttackIds::random(seed).get(index));
            prop_assert!(id > RANDOM_FLOOR && id <= i64::MAX as u64);
        }

        #[test]
        fn random_ids_are_distinct(seed: u64, from in 0..RANDOM_SIZE - 5000) {
            let ids = AttackIds::random(seed);
            let drawn: HashSet<Id> = (from..from + 5000).map(|index| ids.get(index)).collect();
            prop_assert_eq!(drawn.len(), 5000);
        }

        #[test]
        fn uuids_are_random_and_distinct(seed: u64, from in 0..RANDOM_SIZE - 1000) {
            let ids = AttackIds::uuids(seed);
            let drawn: HashSet<Id> = (from..from + 1000).map(|index| ids.get(index)).collect();
            prop_assert_eq!(drawn.len(), 1000);
            for id in drawn {
                let Id::Uuid(id) = id else { panic!("{id:?} is not a UUID") };
                prop_assert_eq!(id.get_version_num(), 4);
                prop_assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
            }
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
            let id = int(legit(range, exponent, seed).get(index));
            prop_assert!((range.first..=range.last).contains(&id));
        }
    }

    #[test]
    fn legit_ids_may_have_the_widest_range() {
        let range = IdRange { first: 0, last: i64::MAX as u64 };
        let ids = legit(range, 1.0, 1);
        assert!((0..1000).all(|index| int(ids.get(index)) <= range.last));
    }

    #[test]
    fn random_ids_are_spread_over_the_whole_range() {
        let ids = AttackIds::random(7);
        let mut sixteenths = [0u32; 16];
        for index in 0..16_000 {
            sixteenths[((int(ids.get(index)) - RANDOM_FLOOR - 1) >> 58) as usize] += 1;
        }
        // 1,000 each are expected with a deviation of 31; the seed is fixed.
        assert!(sixteenths.iter().all(|n| (850..1150).contains(n)), "{sixteenths:?}");
    }

    #[test]
    fn random_bits_of_uuids_are_even() {
        let ids = AttackIds::uuids(7);
        let mut ones = [0_u32; 128];
        for index in 0..4_000 {
            let Id::Uuid(id) = ids.get(index) else { panic!("not a UUID") };
            for (bit, count) in ones.iter_mut().enumerate() {
                *count += (id.as_u128() >> bit & 1) as u32;
            }
        }
        // 2,000 each are expected with a deviation of 32; the seed is fixed. Six bits are constant:
        // version and variant.
        let constant = ones.iter().filter(|&&n| n == 0 || n == 4_000).count();
        assert_eq!(constant, 6, "{ones:?}");
        assert!(ones.iter().all(|&n| n == 0 || n == 4_000 || (1_840..2_160).contains(&n)));
    }

    #[test]
    fn the_same_seed_draws_the_same_ids() {
        let range = IdRange { first: 1, last: 1000 };
        let draw = |seed| -> Vec<Id> {
            let (attack, legit) = (AttackIds::random(seed), legit(range, 1.0, seed));
            (0..100).flat_map(|index| [attack.get(index), legit.get(index)]).collect()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn popularity_follows_the_exponent() {
        let range = IdRange { first: 1, last: 100 };
        let max_count = |exponent| {
            let ids = legit(range, exponent, 3);
            let mut counts: HashMap<Id, u32> = HashMap::new();
            for index in 0..100_000 {
                *counts.entry(ids.get(index)).or_default() += 1;
            }
            counts.into_values().max().unwrap()
        };
        // The first rank has 1/H(100) = 19.3 % at exponent 1, and 1 % at exponent 0.
        assert!((18_000..21_000).contains(&max_count(1.0)));
        assert!(max_count(0.0) < 1_300);
    }

    #[test]
    fn sequential_ids_count_upward() {
        let ids = AttackIds::Sequential(1001);
        assert_eq!((0..3).map(|index| int(ids.get(index))).collect::<Vec<_>>(), [1001, 1002, 1003]);
    }
}
