//! Tests of the bit positions.

use super::*;
use crate::chi_square::{chi_square, critical_value};
use crate::hash::{HashAlgorithm, KeyedHasher, Secret};

fn hash(block: u64, bits: u64) -> KeyHash {
    KeyHash { block, bits }
}

/// Hashes of consecutive integers under either algorithm.
fn hashes(count: u64) -> impl Iterator<Item = KeyHash> {
    let secret = Secret::new(&[5; 32]).unwrap();
    [HashAlgorithm::SipHash13, HashAlgorithm::Xxh3].into_iter().flat_map(move |algorithm| {
        let hasher = KeyedHasher::new(algorithm, &secret, &[9; 16]);
        (0..count).map(move |key| hasher.hash(&key.to_le_bytes()))
    })
}

/// Hashes that break weak schemes: zero step, zero start, minimal differences.
fn awkward_hashes() -> impl Iterator<Item = KeyHash> {
    let values = [0, 1, 2, 1 << 32, 1 << 63, u64::MAX - 1, u64::MAX];
    values.into_iter().flat_map(move |block| values.map(|bits| hash(block, bits)))
}

/// Computed independently, in Python.
#[test]
fn case_07_positions_agree_with_golden_vectors() {
    let golden: [(u64, u64, u64, &[u64]); 5] = [
        (0, 0, 3, &[0, 1]),
        (u64::MAX, u64::MAX, 2, &[1, 0]),
        (
            0x3eb0_bfb0_b0f8_1885,
            0x8ce4_4ca7_7d45_6359,
            9_585_059,
            &[9_061_076, 250_167, 8_823_637, 6_845_377, 6_824_245, 2_688_425, 8_436_212],
        ),
        (
            0x8947_fad3_3aa8_e169,
            0x2b40_34be_0bf1_e7d8,
            (1 << 33) + 7,
            &[
                4_983_381_802,
                3_305_695_622,
                5_286_383_989,
                1_486_043_942,
                7_752_606_724,
                8_528_698_576,
                1_104_582_484,
                7_064_938_320,
                5_008_910_447,
                6_506_788_440,
            ],
        ),
        (
            0x0123_4567_89ab_cdef,
            0xfedc_ba98_7654_3210,
            (1 << 61) - 1,
            &[
                1_610_049_084_313_739_812,
                0,
                1_509_791_785_853_377_329,
                1_098_461_287_983_559_980,
                294_885_753_880_595_525,
            ],
        ),
    ];
    for (block, bits, limit, expected) in golden {
        let got: Vec<u64> = positions(hash(block, bits), limit, expected.len() as u32).collect();
        assert_eq!(got, expected);
    }
}

/// The published first outputs of SplitMix64 for the seed 1234567.
#[test]
fn case_07_mixer_agrees_with_splitmix64() {
    let outputs = [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
        4_593_380_528_125_082_431,
        16_408_922_859_458_223_821,
    ];
    let mut state = 1_234_567_u64;
    for output in outputs {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        assert_eq!(mix(state), output);
    }
}

#[test]
fn positions_are_in_range_for_any_size() {
    for hash in awkward_hashes().chain(hashes(100)) {
        assert_eq!(positions(hash, 1, 1).collect::<Vec<_>>(), [0]);
        for bits in (2..70).chain([1 << 33, (1 << 61) - 1, u64::MAX]) {
            assert!(positions(hash, bits, 64).all(|at| at < bits));
            assert_eq!(positions(hash, bits, 64).count(), 64);
        }
    }
}

#[test]
fn case_05_first_two_positions_differ() {
    for hash in awkward_hashes().chain(hashes(20_000)) {
        for bits in [2, 3, 44, 1 << 40] {
            let [first, second] = [0, 1].map(|i| positions(hash, bits, 2).nth(i).unwrap());
            assert_ne!(first, second);
        }
    }
}

#[test]
fn case_05_second_position_is_uniform_among_the_remaining_bits() {
    let mut counts = [0_u32; 12];
    for hash in hashes(60_000) {
        let mut both = positions(hash, 4, 2);
        let (first, second) = (both.next().unwrap(), both.next().unwrap());
        counts[(first * 3 + second - u64::from(second > first)) as usize] += 1;
    }
    assert!(chi_square(&counts) < critical_value(12), "{counts:?}");
}

#[test]
fn case_04_positions_are_uniform_in_filters_beyond_32_bits() {
    for bits in [3 << 29, (1_u64 << 33) + 7, 1 << 50] {
        let mut counts = [[0_u32; 64]; 4];
        for hash in hashes(30_000) {
            for (counts, at) in counts.iter_mut().zip(positions(hash, bits, 4)) {
                counts[(u128::from(at) * 64 / u128::from(bits)) as usize] += 1;
            }
        }
        for counts in &counts {
            assert!(chi_square(counts) < critical_value(64), "{bits}: {counts:?}");
        }
    }
}

/// Double hashing fails this test: its steps from one position to the next are equal.
#[test]
fn case_05_steps_between_positions_are_independent() {
    const BITS: u64 = 1_000_003;
    let mut counts = vec![0_u32; 32 * 32];
    for hash in hashes(60_000) {
        let at: Vec<u64> = positions(hash, BITS, 5).collect();
        let part = |from: u64, to: u64| ((to + BITS - from) % BITS * 32 / BITS) as usize;
        counts[part(at[2], at[3]) * 32 + part(at[3], at[4])] += 1;
    }
    assert!(chi_square(&counts) < critical_value(1024));
}
