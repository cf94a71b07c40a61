//! The bit layout of the Bloom filter: from a hash to a block and its bits.
//!
//! A block is 64 bytes, one cache line: eight words of 64 bits in four pairs, the words 0 and 4, 1
//! and 5, 2 and 6, 3 and 7. A key selects one word of each pair and sets two different bits in it:
//! eight bits in total, with four independent loads from one line. (These pairs suit vectors: the
//! first words of all pairs are one half of the block, the second words the other.)
//!
//! ```text
//! KeyHash.block  ─ × blocks, upper half of the product ─▶ the block
//! KeyHash.bits   63 … 60   the word within pair 0, 1, 2, 3
//!                59 … 16   for each pair 11 bits: 6 for a position, 5 for a distance
//!                15 …  0   not used
//! ```
//!
//! The second bit of a word is 1 to 32 positions above the first, modulo 64. Any two bits have such
//! a distance in one direction, so all 2016 pairs of bits occur, each with probability 1/2048
//! (2/2048 at distance 32, which occurs in both directions). Two independent positions would
//! coincide with probability 1/64, which would cost 0.6 % more memory at a false-positive rate of
//! 0.1 %.
//!
//! This layout is part of every stored or exchanged filter: a change makes existing filters
//! invalid.

use crate::hash::KeyHash;

/// Words in a block.
pub(crate) const WORDS: usize = 8;

/// Words of a key: one of each pair.
pub(crate) const WORDS_PER_KEY: usize = 4;

/// Bits that a key sets: two in each of its words.
pub(crate) const BITS_PER_KEY: u32 = 8;

/// Bits in a block.
pub(crate) const BLOCK_BITS: u64 = 512;

/// Bytes in a block.
pub(crate) const BLOCK_BYTES: u64 = 64;

/// The index of the block of `hash`, less than `blocks`.
///
/// The upper half of a 64 by 64 bit product maps a uniform hash to `0..blocks` for any number of
/// blocks, with a bias below `blocks / 2^64` and without a division (Lemire, "Fast random integer
/// generation in an interval", 2019).
#[inline]
pub(crate) fn block_index(hash: KeyHash, blocks: u64) -> u64 {
    ((u128::from(hash.block) * u128::from(blocks)) >> 64) as u64
}

/// The indexes of the four words for the `bits` of a hash, each with the mask of its two bits.
#[inline]
pub(crate) fn word_masks(bits: u64) -> [(usize, u64); WORDS_PER_KEY] {
    std::array::from_fn(|pair| {
        let second = (bits >> (63 - pair)) & 1;
        let position = (bits >> (54 - 11 * pair)) & 63;
        let distance = (bits >> (49 - 11 * pair)) & 31;
        let mask = (1_u64 | (2 << distance)).rotate_left(position as u32);
        (pair + WORDS_PER_KEY * second as usize, mask)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chi_square::{chi_square, critical_value};
    use crate::hash::{HashAlgorithm, KeyedHasher, Secret};

    fn hashers() -> [KeyedHasher; HashAlgorithm::ALL.len()] {
        let secret = Secret::new(&[5; 32]).unwrap();
        HashAlgorithm::ALL.map(|hash| KeyedHasher::new(hash, &secret, &[9; 16]))
    }

    #[test]
    fn block_index_is_in_range_for_any_number_of_blocks() {
        for blocks in 1..=65 {
            for block in [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
                let index = block_index(KeyHash { block, bits: 0 }, blocks);
                assert!(index < blocks, "{index} of {blocks}");
            }
            let first = block_index(KeyHash { block: 0, bits: 0 }, blocks);
            let last = block_index(KeyHash { block: u64::MAX, bits: 0 }, blocks);
            assert_eq!((first, last), (0, blocks - 1));
        }
    }

    #[test]
    fn word_masks_read_the_documented_bit_fields() {
        // Second word in pairs 1 and 3.
        let mut bits = 0b0101_u64;
        for (position, distance) in [(0, 0), (63, 0), (5, 31), (40, 31)] {
            bits = (bits << 11) | (position << 5) | distance;
        }
        let actual = word_masks((bits << 16) | 0xffff);
        let masks = [(0, 1), (63, 0), (5, 37), (40, 8)].map(|(a, b)| (1 << a) | (1 << b));
        assert_eq!(actual, [(0, masks[0]), (5, masks[1]), (2, masks[2]), (7, masks[3])]);
    }

    #[test]
    fn every_pair_of_bits_in_a_word_can_be_chosen() {
        let mut ways = std::collections::HashMap::new();
        for choice in 0..2048 {
            let [(_, mask), ..] = word_masks(choice << 49);
            *ways.entry(mask).or_insert(0) += 1;
        }
        assert_eq!(ways.len(), 64 * 63 / 2);
        for (mask, ways) in ways {
            let opposite = mask == mask.rotate_left(32);
            assert_eq!((mask.count_ones(), ways), (2, if opposite { 2 } else { 1 }));
        }
    }

    #[test]
    fn case_05_every_key_sets_eight_distinct_bits() {
        for hasher in hashers() {
            for key in 0..100_000_u64 {
                let masks = word_masks(hasher.hash(&key.to_le_bytes()).bits);
                for (pair, (word, mask)) in masks.into_iter().enumerate() {
                    assert_eq!((word % 4, mask.count_ones()), (pair, 2));
                }
            }
        }
    }

    #[test]
    fn case_04_block_index_is_uniform_for_large_block_counts() {
        for hasher in hashers() {
            for blocks in [3 << 29, (1_u64 << 33) + 7, 1 << 50] {
                let mut counts = [0_u32; 64];
                for key in 0..100_000_u64 {
                    let index = block_index(hasher.hash(&key.to_le_bytes()), blocks);
                    counts[(u128::from(index) * 64 / u128::from(blocks)) as usize] += 1;
                }
                assert!(
                    chi_square(&counts) < critical_value(64),
                    "{} {counts:?}",
                    hasher.algorithm().name()
                );
            }
        }
    }

    /// The bits must be uniform within one block, too: they must not depend on the hash bits that
    /// select the block. For SipHash both come from the same 64 bits.
    #[test]
    fn case_05_bits_are_uniform_within_a_subset_of_the_blocks() {
        for hasher in hashers() {
            let mut words = [0_u32; 16];
            let (mut positions, mut distances) = ([[0_u32; 64]; 4], [[0_u32; 32]; 4]);
            for key in 0..400_000_u64 {
                let hash = hasher.hash(&key.to_le_bytes());
                if block_index(hash, 16) != 11 {
                    continue;
                }
                words[(hash.bits >> 60) as usize] += 1;
                for pair in 0..4 {
                    positions[pair][((hash.bits >> (54 - 11 * pair)) & 63) as usize] += 1;
                    distances[pair][((hash.bits >> (49 - 11 * pair)) & 31) as usize] += 1;
                }
            }
            assert!(chi_square(&words) < critical_value(16), "{words:?}");
            for counts in &positions {
                assert!(chi_square(counts) < critical_value(64), "{counts:?}");
            }
            for counts in &distances {
                assert!(chi_square(counts) < critical_value(32), "{counts:?}");
            }
        }
    }
}
