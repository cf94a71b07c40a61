//! Size and statistics of a bitmap.

use std::sync::atomic::Ordering;

use super::Bitmap;
use super::base::MAX_IN_ARRAY;
use super::page::PAGE_BITS;
use crate::membership::Stats;

impl Bitmap {
    /// The number of ids.
    pub fn len(&self) -> u64 {
        self.distinct.total()
    }

    /// Whether nothing was inserted, neither an id nor a non-integer key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && !self.has_non_integer_keys()
    }

    /// Bytes of heap memory, as requested from the allocator, without the counters, which are
    /// always 4 KiB; constant time.
    pub fn bytes(&self) -> u64 {
        self.state.load().bytes()
    }

    /// Bytes that a compacted set of `ids` dense ids takes, to within a percent; constant time.
    pub fn planned_bytes(ids: u64) -> u128 {
        /// Bytes of directory per chunk.
        const CHUNK: u128 = 40;
        /// Bytes of an empty set.
        const EMPTY: u128 = 128;
        const PAGE: u128 = PAGE_BITS as u128 / 8;
        let (whole, rest) = (u128::from(ids >> 16), u128::from(ids & 0xffff));
        let rest_bytes = if rest > MAX_IN_ARRAY as u128 { PAGE } else { 2 * rest };
        let chunks = whole + u128::from(rest > 0);
        EMPTY + whole * PAGE + rest_bytes + chunks * CHUNK
    }

    /// The statistics of the set; constant time.
    ///
    /// `distinct` counts ids. The false-positive rates are those of integers and therefore 0.
    /// `fill_ratio` is the share of used slots, where a page has 65,536 slots and an array as many
    /// as it has ids.
    pub fn stats(&self) -> Stats {
        let (items, distinct) = (self.inserts.total(), self.distinct.total());
        let state = self.state.load();
        // The counters can include inserts that the loaded state lacks.
        let fill_ratio = (distinct as f64 / state.slots().max(1) as f64).min(1.0);
        Stats {
            items,
            distinct: Some(distinct),
            capacity: None,
            bytes: state.bytes(),
            hashes: 0,
            fill_ratio,
            expected_false_positive_rate: 0.0,
            current_false_positive_rate: 0.0,
        }
    }

    /// Whether a key that is not an integer was inserted, so that all such keys are reported
    /// present.
    pub fn has_non_integer_keys(&self) -> bool {
        self.has_non_integer.load(Ordering::Acquire)
    }
}
