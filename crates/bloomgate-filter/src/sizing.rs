//! How large a filter must be for a number of items at a false-positive rate.
//!
//! # The model
//!
//! The rate of the [layout](crate#the-layout) can be computed instead of approximated. Take a block
//! that holds *j* keys, and an absent key that falls into it.
//!
//! In one pair of words each stored key word_masks one of the two words with probability ½ and sets two
//! different bits there, d = 1 … 32 places apart around the word. Of the 2048 equally likely choices
//! one sets two given bits that are d < 32 apart, and two set them if d = 32. Look at the word that
//! the absent key word_masks:
//!
//! - One given bit stays 0 under one stored key with probability A = ½ + ½ (1 − 2/64): either the
//!   other word was picked, or both of its bits missed. Under *j* independent keys it stays 0 with
//!   probability Aʲ.
//! - Two given bits both stay 0 under one key with probability B = ½ + ½ (1 − 4/64 + 1/2048), by
//!   inclusion and exclusion; if they are 32 apart with C = ½ + ½ (1 − 4/64 + 2/2048). Under *j*
//!   keys with Bʲ and Cʲ.
//! - The absent key needs both of its own bits set, which by inclusion and exclusion again has
//!   probability 1 − 2Aʲ + Bʲ; for one key in 32 its bits are 32 apart.
//!
//! So the pair passes with probability g(j) = 1 − 2Aʲ + (31/32) Bʲ + (1/32) Cʲ. Given *j*, the four
//! pairs use separate bits of the hash and separate words, hence are independent, and the block
//! passes with probability g(j)⁴.
//!
//! With *n* keys thrown evenly into *b* blocks, *j* is binomial: n trials of probability 1/b. (For
//! more than a few blocks that is the Poisson distribution of mean n/b, which the literature uses:
//! Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters", 2007. The
//! binomial is exact for one block too.) The rate of the filter is the mean of g(j)⁴ over it.
//!
//! The sums below use only addition, multiplication and division, which IEEE 754 fixes to the last
//! bit: every target computes the same params.

use crate::error::Error;
use crate::layout::{BITS_PER_KEY, BLOCK_BITS, BLOCK_BYTES};

mod classic;
mod model;
#[cfg(test)]
mod tests;

pub use classic::ClassicParams;
use model::{A, model_rate};

/// 2^64, the number of values that the hash can take.
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
    /// The smallest rate on offer, one in a thousand million.
    ///
    /// Below it a block would hold so few keys that an exact set is no larger, and the 48 bits of
    /// pattern in a block leave too little margin for a promise.
    pub const MIN: f64 = 1e-9;

    /// Checks `value`.
    ///
    /// # Errors
    ///
    /// [`Error::RateOutOfRange`] unless 0 < `value` < 1 (so for NaN too), [`Error::RateTooSmall`]
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

/// The size of a filter, made for a number of items at a rate.
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
    rate: FalsePositiveRate,
    blocks: u64,
}

impl BloomParams {
    /// The fewest blocks with which the rate of the model at `items` is at most `rate`.
    ///
    /// No items are fine: such a params has one block, and the filter works. Allocates nothing and
    /// takes well under a millisecond for any arguments.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] with the bytes needed if those exceed `isize::MAX`, the limit of one
    /// allocation; [`Error::HashTooNarrow`] if `items` / 2^64, the chance that an absent key has
    /// the same 64-bit hash as a stored one, exceeds a tenth of `rate`.
    pub fn new(items: u64, rate: FalsePositiveRate) -> Result<Self, Error> {
        // Invariant of the bisection: `enough` blocks suffice, `few` don't.
        let (mut few, mut enough) = (0_u64, 1_u64);
        while model_rate(items, enough) > rate.0 {
            few = enough;
            // No legal input needs more than 2^63 blocks: at 1e-9 a block still holds two keys.
            enough = enough.saturating_mul(2);
        }
        while enough - few > 1 {
            let middle = few + (enough - few) / 2;
            if model_rate(items, middle) > rate.0 {
                few = middle;
            } else {
                enough = middle;
            }
        }
        let bytes = u128::from(enough) * u128::from(BLOCK_BYTES);
        if bytes > isize::MAX as u128 {
            return Err(Error::TooLarge { items, rate: rate.0, bytes });
        }
        if items as f64 / HASHES > rate.0 / 10.0 {
            return Err(Error::HashTooNarrow { items, rate: rate.0 });
        }
        Ok(Self { items, rate, blocks: enough })
    }

    /// The params of a stored filter, whose blocks are taken as they are.
    ///
    /// `None` if no filter can have them: none at all, or more bytes than one allocation may have.
    pub(crate) fn stored(items: u64, rate: FalsePositiveRate, blocks: u64) -> Option<Self> {
        const MAX_BLOCKS: u64 = isize::MAX as u64 / BLOCK_BYTES;
        (1..=MAX_BLOCKS).contains(&blocks).then_some(Self { items, rate, blocks })
    }

    /// The number of items planned for.
    pub const fn items(&self) -> u64 {
        self.items
    }

    /// The rate asked for.
    pub const fn rate(&self) -> FalsePositiveRate {
        self.rate
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

    /// The number of bits a key sets, the same in every params.
    pub const fn hashes(&self) -> u32 {
        BITS_PER_KEY
    }

    /// Bits per planned item; for a params of no items, the bits of its one block.
    pub fn bits_per_item(&self) -> f64 {
        self.bits() as f64 / self.items.max(1) as f64
    }

    /// The rate of the [model](self) once `items` distinct keys are in, from 0 to 1.
    ///
    /// Costs a sum over the likely numbers of keys a block: microseconds, whatever `items` is.
    pub fn expected_rate(&self, items: u64) -> f64 {
        model_rate(items, self.blocks)
    }

    /// The share of bits that are set once `items` distinct keys are in, by the model.
    pub fn expected_fill(&self, items: u64) -> f64 {
        -(items as f64 * self.ln_kept()).exp_m1()
    }

    /// The number of distinct keys that most likely set the share `fill` of the bits.
    ///
    /// The inverse of [`expected_fill`](BloomParams::expected_fill). `None` if every bit is set: then the
    /// number is unknown, there being nothing left to count.
    pub fn estimated_items(&self, fill: f64) -> Option<u64> {
        if fill < 1.0 {
            // Through `as`, a negative zero or a rounding error below zero becomes 0.
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
