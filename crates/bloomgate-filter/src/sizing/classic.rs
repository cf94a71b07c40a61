//! Sizes of the classic Bloom filter.

use std::f64::consts::LN_2;

use super::{FalsePositiveRate, HASHES};
use crate::error::Error;

#[cfg(test)]
mod tests;

/// The most bits a key may set.
const MAX_HASHES: u32 = 64;

/// The parameters of a [`ClassicBloom`](crate::ClassicBloom): bits and hashes by the textbook
/// formulas.
///
/// For *n* items at rate *p* these are m = ⌈−n ln p / ln² 2⌉ bits and k = m/n · ln 2 hashes,
/// rounded to the nearest whole number from 1 to 64 (Bloom, "Space/time trade-offs in hash coding
/// with allowable errors", 1970; in this form Broder and Mitzenmacher, "Network applications of
/// Bloom filters: a survey", 2004).
///
/// | items | rate | bits | hashes |
/// |---|---|---|---|
/// | 1,000,000 | 1 % | 9,585,059 | 7 |
/// | 10,000,000 | 0.1 % | 143,775,876 | 10 |
/// | 1,000,000,000 | 0.01 % | 19,170,116,755 | 13 |
///
/// Some articles give 7 hashes at 0.1 %. That is the number for 1 %: in the same memory, 7 hashes
/// give a rate of 0.126 %.
///
/// Because k is an integer, the actual rate can exceed the requested one: by up to 2 % of it for
/// rates of at most 0.1. Rates above ½ would need less than one hash and are exceeded by up to an
/// eighth. [`expected_rate`](ClassicParams::expected_rate) is the actual rate.
/// [`BloomParams`](crate::BloomParams) never exceed theirs.
///
/// ```
/// use bloomgate_filter::{ClassicParams, FalsePositiveRate};
///
/// let params = ClassicParams::new(1_000_000, FalsePositiveRate::new(0.01)?)?;
/// assert_eq!((params.bits(), params.hashes()), (9_585_059, 7));
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassicParams {
    items: u64,
    false_positive_rate: FalsePositiveRate,
    /// At least 1.
    bits: u64,
    /// From 1 to [`MAX_HASHES`], and never more than `bits`.
    hashes: u32,
}

impl ClassicParams {
    /// The size for `items` at `false_positive_rate`. Doesn't allocate.
    ///
    /// `items` can be 0: the filter then has 64 bits, one word, and the hashes for one item.
    ///
    /// The natural logarithm differs in its last digit between targets. Where the formula is that
    /// close to an integer, the bits may differ by one between targets (from 2^53 bits on, by
    /// more); stored filters therefore contain their bits and hashes.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] with the bytes needed if those exceed `isize::MAX`, the limit of one
    /// allocation; [`Error::HashTooNarrow`] if `items` / 2^64, the probability that an absent key
    /// has the same 64-bit hash as a stored one, exceeds a tenth of `false_positive_rate`.
    pub fn new(items: u64, false_positive_rate: FalsePositiveRate) -> Result<Self, Error> {
        let rate = false_positive_rate.get();
        let sized_for = items.max(1) as f64;
        // At least 1, since the quotient is above 0; at most 2^64 · 44, which fits a u128.
        let bits = (sized_for * -rate.ln() / (LN_2 * LN_2)).ceil();
        let hashes = (bits / sized_for * LN_2).round().clamp(1.0, f64::from(MAX_HASHES));
        let bits = if items == 0 { 64 } else { bits as u128 };

        let bytes = bits.div_ceil(64) * 8;
        if bytes > isize::MAX as u128 {
            return Err(Error::TooLarge { items, false_positive_rate: rate, bytes });
        }
        if items as f64 / HASHES > rate / 10.0 {
            return Err(Error::HashTooNarrow { items, false_positive_rate: rate });
        }
        // The check above limits the bits to less than 2^61: at most 2^64 · p / 10 items of
        // −ln p / ln² 2 bits each, and −p ln p is at most 1/e.
        Ok(Self { items, false_positive_rate, bits: bits as u64, hashes: hashes as u32 })
    }

    /// The parameters of a stored filter, with its own bits and hashes.
    ///
    /// `None` if they are invalid: no bits, no hashes, more hashes than 64 or than bits, or more
    /// bytes than one allocation can have.
    pub(crate) fn stored(
        items: u64,
        false_positive_rate: FalsePositiveRate,
        bits: u64,
        hashes: u32,
    ) -> Option<Self> {
        let max_hashes = bits.min(u64::from(MAX_HASHES));
        let params = Self { items, false_positive_rate, bits, hashes };
        ((1..=max_hashes).contains(&u64::from(hashes)) && params.bytes() <= isize::MAX as u64)
            .then_some(params)
    }

    /// The number of items that the filter is sized for.
    pub const fn items(&self) -> u64 {
        self.items
    }

    /// The false-positive rate that the filter is sized for.
    pub const fn false_positive_rate(&self) -> FalsePositiveRate {
        self.false_positive_rate
    }

    /// The size in bits, at least 1.
    pub const fn bits(&self) -> u64 {
        self.bits
    }

    /// The number of bits a key sets, from 1 to 64, and at most [`bits`](ClassicParams::bits).
    ///
    /// A key whose hashes collide sets fewer bits, but at least two if there are two hashes.
    pub const fn hashes(&self) -> u32 {
        self.hashes
    }

    /// The size in bytes, in whole words of 64 bits; counters not included.
    pub const fn bytes(&self) -> u64 {
        self.words() * 8
    }

    /// The number of 64-bit words that hold the bits.
    pub(crate) const fn words(&self) -> u64 {
        self.bits.div_ceil(64)
    }

    /// Bits per item; for 0 items, the bits of the one word.
    pub fn bits_per_item(&self) -> f64 {
        self.bits as f64 / self.items.max(1) as f64
    }

    /// The false-positive rate with `items` distinct keys: (1 − e^(−k·items/m))^k, from 0 to 1.
    ///
    /// The formula neglects the variance of the share of set bits, which increases the true rate,
    /// in a half-full filter by about k²/6m of it, which is relevant below some thousand bits (Bose
    /// et al., "On the false-positive rate of Bloom filters", 2008); the difference between
    /// e^(−1/m) and 1 − 1/m; that the first two bits of a key always differ; and keys with equal
    /// hashes, which [`new`](ClassicParams::new) limits to a tenth of the rate.
    pub fn expected_rate(&self, items: u64) -> f64 {
        self.rate_at_fill(self.expected_fill(items))
    }

    /// The share of bits that `items` distinct keys set, from 0 to 1: 1 − e^(−k·items/m).
    ///
    /// With the same approximations as [`expected_rate`](ClassicParams::expected_rate).
    pub fn expected_fill(&self, items: u64) -> f64 {
        -(-(items as f64) * self.share_per_item()).exp_m1()
    }

    /// The most likely number of distinct keys if the share `fill` of the bits is set:
    /// −m/k · ln(1 − fill) (Swamidass and Baldi, "Mathematical correction for fingerprint
    /// similarity measures to improve chemical retrieval", 2007).
    ///
    /// The inverse of [`expected_fill`](ClassicParams::expected_fill). `None` if every bit is set,
    /// which makes an estimate impossible.
    pub fn estimated_items(&self, fill: f64) -> Option<u64> {
        if fill < 1.0 {
            // The cast turns negative zero into 0.
            Some((-(-fill.max(0.0)).ln_1p() / self.share_per_item()).round() as u64)
        } else {
            None
        }
    }

    /// The false-positive rate if the share `fill` of the bits is set.
    pub(crate) fn rate_at_fill(&self, fill: f64) -> f64 {
        fill.powi(self.hashes as i32)
    }

    /// k/m, the share of the bits that one key sets in an empty filter.
    fn share_per_item(&self) -> f64 {
        f64::from(self.hashes) / self.bits as f64
    }
}
