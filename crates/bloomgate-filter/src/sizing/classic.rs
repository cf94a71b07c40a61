//! How large a classic Bloom filter must be.

use std::f64::consts::LN_2;

use super::{FalsePositiveRate, HASHES};
use crate::error::Error;

#[cfg(test)]
mod tests;

/// The most bits a key may set.
const MAX_HASHES: u32 = 64;

/// The size of a [`ClassicBloom`](crate::ClassicBloom): bits and hashes by the textbook formulas.
///
/// For *n* items at rate *p* these are m = ⌈−n ln p / ln² 2⌉ bits and k = m/n · ln 2 hashes, rounded
/// to the nearest whole number from 1 to 64 (Bloom, "Space/time trade-offs in hash coding with
/// allowable errors", 1970; in this form Broder and Mitzenmacher, "Network applications of Bloom
/// filters: a survey", 2004).
///
/// | items | rate | bits | hashes |
/// |---|---|---|---|
/// | 1,000,000 | 1 % | 9,585,059 | 7 |
/// | 10,000,000 | 0.1 % | 143,775,876 | 10 |
/// | 1,000,000,000 | 0.01 % | 19,170,116,755 | 13 |
///
/// Some articles give 7 hashes at 0.1 %. That is wrong: 7 belongs to 1 %, and in the same memory it
/// lets 0.126 % pass.
///
/// Because k is whole, the rate can be missed by a little: by up to 2 % of itself for rates of at
/// most 0.1. Rates above a half want less than one hash and are missed by up to an eighth.
/// [`expected_rate`](ClassicParams::expected_rate) tells; [`BloomParams`](crate::BloomParams) has no such slack.
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
    rate: FalsePositiveRate,
    /// At least 1.
    bits: u64,
    /// From 1 to [`MAX_HASHES`], and never more than `bits`.
    hashes: u32,
}

impl ClassicParams {
    /// The size for `items` at `rate`. Allocates nothing.
    ///
    /// No items are fine, though the formula would give no bits: such a params has the hashes of a
    /// params for one item, in the 64 bits of the one word that is allocated anyway.
    ///
    /// The natural logarithm of some targets differs in its last digit. Where the formula comes
    /// within such a digit of a whole number, the bits may differ by one between targets (from
    /// 2^53 bits on, by more); stored filters therefore carry their bits and hashes.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] with the bytes needed if those exceed `isize::MAX`, the limit of one
    /// allocation; [`Error::HashTooNarrow`] if `items` / 2^64, the chance that an absent key has
    /// the same 64-bit hash as a stored one, exceeds a tenth of `rate`.
    pub fn new(items: u64, rate: FalsePositiveRate) -> Result<Self, Error> {
        let sized_for = items.max(1) as f64;
        // At least 1, since the quotient is above 0; at most 2^64 · 44, far inside a u128.
        let bits = (sized_for * -rate.get().ln() / (LN_2 * LN_2)).ceil();
        let hashes = (bits / sized_for * LN_2).round().clamp(1.0, f64::from(MAX_HASHES));
        let bits = if items == 0 { 64 } else { bits as u128 };

        let bytes = bits.div_ceil(64) * 8;
        if bytes > isize::MAX as u128 {
            return Err(Error::TooLarge { items, rate: rate.get(), bytes });
        }
        if items as f64 / HASHES > rate.get() / 10.0 {
            return Err(Error::HashTooNarrow { items, rate: rate.get() });
        }
        // What passed the test above has fewer than 2^61 bits: at most 2^64 · p / 10 items of
        // −ln p / ln² 2 bits each, and −p ln p is at most 1/e.
        Ok(Self { items, rate, bits: bits as u64, hashes: hashes as u32 })
    }

    /// The params of a stored filter, whose bits and hashes are taken as they are.
    ///
    /// `None` if no filter can have them: no bits, no hashes, more than 64 or more than bits, or
    /// more bytes than one allocation may have.
    pub(crate) fn stored(
        items: u64,
        rate: FalsePositiveRate,
        bits: u64,
        hashes: u32,
    ) -> Option<Self> {
        let max_hashes = bits.min(u64::from(MAX_HASHES));
        let params = Self { items, rate, bits, hashes };
        ((1..=max_hashes).contains(&u64::from(hashes)) && params.bytes() <= isize::MAX as u64)
            .then_some(params)
    }

    /// The number of items planned for.
    pub const fn items(&self) -> u64 {
        self.items
    }

    /// The rate asked for.
    pub const fn rate(&self) -> FalsePositiveRate {
        self.rate
    }

    /// The size in bits, at least 1.
    pub const fn bits(&self) -> u64 {
        self.bits
    }

    /// The number of bits a key sets, from 1 to 64, and at most [`bits`](ClassicParams::bits).
    ///
    /// A key whose hashes meet on the same bit sets fewer, but at least two if there are two hashes.
    pub const fn hashes(&self) -> u32 {
        self.hashes
    }

    /// The size in bytes of memory, which has whole words of 64 bits; counters not included.
    pub const fn bytes(&self) -> u64 {
        self.words() * 8
    }

    /// The number of 64-bit words that hold the bits.
    pub(crate) const fn words(&self) -> u64 {
        self.bits.div_ceil(64)
    }

    /// Bits per planned item; for a params of no items, the bits of its one word.
    pub fn bits_per_item(&self) -> f64 {
        self.bits as f64 / self.items.max(1) as f64
    }

    /// The false-positive rate once `items` distinct keys are in: (1 − e^(−k·items/m))^k, from 0
    /// to 1.
    ///
    /// Neglected are: that the share of set bits varies about its mean, which makes the true rate
    /// larger, in a half-full filter by about k²/6m of itself, so that it matters below some
    /// thousand bits (Bose et al., "On the false-positive rate of Bloom filters", 2008); that
    /// e^(−1/m) stands for 1 − 1/m; that the first two bits of a key never meet; and keys with
    /// equal hashes, which [`new`](ClassicParams::new) keeps below a tenth of the rate.
    pub fn expected_rate(&self, items: u64) -> f64 {
        self.rate_at_fill(self.expected_fill(items))
    }

    /// The share of bits that are set once `items` distinct keys are in: 1 − e^(−k·items/m).
    ///
    /// With the same neglects as [`expected_rate`](ClassicParams::expected_rate).
    pub fn expected_fill(&self, items: u64) -> f64 {
        -(-(items as f64) * self.share_per_item()).exp_m1()
    }

    /// The number of distinct keys that most likely set the share `fill` of the bits:
    /// −m/k · ln(1 − fill) (Swamidass and Baldi, "Mathematical correction for fingerprint
    /// similarity measures to improve chemical retrieval", 2007).
    ///
    /// The inverse of [`expected_fill`](ClassicParams::expected_fill). `None` if every bit is set:
    /// then the number is unknown, there being nothing left to count.
    pub fn estimated_items(&self, fill: f64) -> Option<u64> {
        if fill < 1.0 {
            // Through `as`, a negative zero becomes 0.
            Some((-(-fill.max(0.0)).ln_1p() / self.share_per_item()).round() as u64)
        } else {
            None
        }
    }

    /// The probability that an absent key passes when the share `fill` of the bits is set.
    pub(crate) fn rate_at_fill(&self, fill: f64) -> f64 {
        fill.powi(self.hashes as i32)
    }

    /// k/m, the share of the bits that one key would set if they were all still 0.
    fn share_per_item(&self) -> f64 {
        f64::from(self.hashes) / self.bits as f64
    }
}
