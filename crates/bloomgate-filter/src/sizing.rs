//! Filter sizes for a number of items at a false-positive rate.
//!
//! # The model
//!
//! The false-positive rate of the [layout](crate#the-layout) can be computed instead of
//! approximated. Consider a block that holds *j* keys, and an absent key that maps to it.
//!
//! In one pair of words each stored key selects one of the two words with probability ½ and sets
//! two different bits in it, at a distance d = 1 … 32 modulo 64. Of the 2048 equally likely choices
//! one sets two given bits at a distance d < 32, and two set them if d = 32. Consider the word that
//! the absent key selects:
//!
//! - One given bit stays 0 under one stored key with probability A = ½ + ½ (1 − 2/64): either the
//!   key selects the other word, or sets two other bits. Under *j* independent keys it stays 0 with
//!   probability Aʲ.
//! - Two given bits both stay 0 under one key with probability B = ½ + ½ (1 − 4/64 + 1/2048), by
//!   inclusion and exclusion; at distance 32 with C = ½ + ½ (1 − 4/64 + 2/2048). Under *j* keys the
//!   probabilities are Bʲ and Cʲ.
//! - The absent key passes if both of its bits are set, again by inclusion and exclusion with
//!   probability 1 − 2Aʲ + Bʲ; one key in 32 has its bits at distance 32.
//!
//! So the pair passes with probability g(j) = 1 − 2Aʲ + (31/32) Bʲ + (1/32) Cʲ. Given *j*, the four
//! pairs use separate bits of the hash and separate words, hence are independent, and the block
//! passes with probability g(j)⁴.
//!
//! With *n* keys distributed uniformly over *b* blocks, *j* is binomial: n trials of probability
//! 1/b. (For more than a few blocks that is close to the Poisson distribution of mean n/b, which
//! the literature uses: Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom
//! filters", 2007. The binomial is exact for one block, too.) The rate of the filter is the mean of
//! g(j)⁴ over this distribution.
//!
//! The sums below use only addition, multiplication and division, which IEEE 754 specifies to the
//! last bit: every target computes the same sizes.

use crate::error::Error;
use crate::layout::{BITS_PER_KEY, BLOCK_BITS, BLOCK_BYTES};

mod classic;
mod model;
#[cfg(test)]
mod tests;

pub use classic::ClassicParams;
use model::{A, model_rate};

/// 2^64, the number of hash values.
const HASHES: f64 = 18_446_744_073_709_551_616.0;

/// A false-positive rate: the share of absent keys that pass, strictly between 0 and 1.
///
/// ```
/// use bloomgate_filter::FalsePositiveRate;
///
/// assert_eq!(FalsePositiveRate::new(0.001)?.get(), 0.001);
/// assert!(FalsePositiveRate::new(2.0).is_err());
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FalsePositiveRate(f64);

impl FalsePositiveRate {
    /// The smallest supported rate: 10^-9.
    ///
    /// At smaller rates an exact set takes no more memory, and the 48 hash bits that select the
    /// bits in a block are too few for a reliable rate.
    pub const MIN: f64 = 1e-9;

    /// Validates `value`.
    ///
    /// # Errors
    ///
    /// [`Error::RateOutOfRange`] unless 0 < `value` < 1 (also for NaN), [`Error::RateTooSmall`]
    /// below [`FalsePositiveRate::MIN`].
    pub fn new(value: f64) -> Result<Self, Error> {
        if !(value > 0.0 && value < 1.0) {
            return Err(Error::RateOutOfRange { value });
        }
        if value < Self::MIN {
            return Err(Error::RateTooSmall { value });
        }
        Ok(Self(value))
    }

    /// The rate as a number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// The parameters of a [`BloomFilter`](crate::BloomFilter): its size for a number of items at a
/// false-positive rate.
///
/// ```
/// use bloomgate_filter::{BloomParams, FalsePositiveRate};
///
/// let params = BloomParams::new(1_000_000, FalsePositiveRate::new(0.01)?)?;
/// assert!(params.expected_rate(1_000_000) <= 0.01);
/// assert!(params.bits_per_item() < 10.2);
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BloomParams {
    items: u64,
    false_positive_rate: FalsePositiveRate,
    blocks: u64,
}

impl BloomParams {
    /// The fewest blocks for which the rate of the [model](self) with `items` keys is at most
    /// `false_positive_rate`.
    ///
    /// `items` can be 0: the filter then has one block. Doesn't allocate, and takes well under a
    /// millisecond for any arguments.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] with the bytes needed if those exceed `isize::MAX`, the limit of one
    /// allocation; [`Error::HashTooNarrow`] if `items` / 2^64, the probability that an absent key
    /// has the same 64-bit hash as a stored one, exceeds a tenth of `false_positive_rate`.
    pub fn new(items: u64, false_positive_rate: FalsePositiveRate) -> Result<Self, Error> {
        let max_rate = false_positive_rate.0;
        // Invariant of the bisection: `enough` blocks suffice, `few` don't.
        let (mut few, mut enough) = (0_u64, 1_u64);
        while model_rate(items, enough) > max_rate {
            few = enough;
            // No valid input needs more than 2^63 blocks: at 1e-9 a block still holds two keys.
            enough = enough.saturating_mul(2);
        }
        while enough - few > 1 {
            let middle = few + (enough - few) / 2;
            if model_rate(items, middle) > max_rate {
                few = middle;
            } else {
                enough = middle;
            }
        }
        let bytes = u128::from(enough) * u128::from(BLOCK_BYTES);
        if bytes > isize::MAX as u128 {
            return Err(Error::TooLarge { items, false_positive_rate: max_rate, bytes });
        }
        if items as f64 / HASHES > max_rate / 10.0 {
            return Err(Error::HashTooNarrow { items, false_positive_rate: max_rate });
        }
        Ok(Self { items, false_positive_rate, blocks: enough })
    }

    /// The parameters of a stored filter, with its own number of blocks.
    ///
    /// `None` if `blocks` is 0, or needs more bytes than one allocation can have.
    pub(crate) fn stored(
        items: u64,
        false_positive_rate: FalsePositiveRate,
        blocks: u64,
    ) -> Option<Self> {
        const MAX_BLOCKS: u64 = isize::MAX as u64 / BLOCK_BYTES;
        (1..=MAX_BLOCKS).contains(&blocks).then_some(Self { items, false_positive_rate, blocks })
    }

    /// The number of items that the filter is sized for.
    pub const fn items(&self) -> u64 {
        self.items
    }

    /// The false-positive rate that the filter is sized for.
    pub const fn false_positive_rate(&self) -> FalsePositiveRate {
        self.false_positive_rate
    }

    /// The number of 64-byte blocks, at least 1.
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The size in bits, counters not included.
    pub const fn bits(&self) -> u64 {
        self.blocks * BLOCK_BITS
    }

    /// The size in bytes, counters not included.
    pub const fn bytes(&self) -> u64 {
        self.blocks * BLOCK_BYTES
    }

    /// The number of bits a key sets: 8.
    pub const fn hashes(&self) -> u32 {
        BITS_PER_KEY
    }

    /// Bits per item; for 0 items, the bits of the one block.
    pub fn bits_per_item(&self) -> f64 {
        self.bits() as f64 / self.items.max(1) as f64
    }

    /// The false-positive rate of the [model](self) with `items` distinct keys, from 0 to 1.
    ///
    /// Costs a sum over the likely numbers of keys per block: microseconds, whatever `items` is.
    pub fn expected_rate(&self, items: u64) -> f64 {
        model_rate(items, self.blocks)
    }

    /// The share of bits that `items` distinct keys set, from 0 to 1, by the [model](self).
    pub fn expected_fill(&self, items: u64) -> f64 {
        -(items as f64 * self.ln_kept()).exp_m1()
    }

    /// The most likely number of distinct keys if the share `fill` of the bits is set.
    ///
    /// The inverse of [`expected_fill`](BloomParams::expected_fill). `None` if every bit is set,
    /// which makes an estimate impossible.
    pub fn estimated_items(&self, fill: f64) -> Option<u64> {
        if fill < 1.0 {
            // The cast turns negative zero and rounding errors below zero into 0.
            Some(((-fill.max(0.0)).ln_1p() / self.ln_kept()).round() as u64)
        } else {
            None
        }
    }

    /// The logarithm of the probability that one key leaves a given bit of the filter at 0.
    fn ln_kept(&self) -> f64 {
        (-(1.0 - A) / self.blocks as f64).ln_1p()
    }
}
