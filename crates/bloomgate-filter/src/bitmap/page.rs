//! A page of a bitmap: one atomic bit for each of the 65,536 ids of a chunk.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words in a page.
pub(crate) const PAGE_WORDS: usize = 1024;

/// Bits in a page.
pub(super) const PAGE_BITS: u64 = 1 << 16;

/// The bits of one chunk, set in place by any number of threads.
///
/// *Memory order.* A read after an insert returned sees the bit, by the coherence of its single
/// word. With release and acquire, a thread that finds an id also sees the writes made before the
/// insert.
pub(super) struct Page([AtomicU64; PAGE_WORDS]);

impl Page {
    /// A page with the bits of `words`.
    pub(super) fn from_words(words: &[u64; PAGE_WORDS]) -> Self {
        Self(array::from_fn(|at| AtomicU64::new(words[at])))
    }

    /// A page with the bits at `positions` set.
    pub(super) fn from_positions(positions: &[u16]) -> Self {
        let mut words = [0; PAGE_WORDS];
        for &position in positions {
            let (word, mask) = word_and_mask(position);
            words[word] |= mask;
        }
        Self::from_words(&words)
    }

    /// Sets the bit at `position`; `true` if it was 0.
    #[inline]
    pub(super) fn insert(&self, position: u16) -> bool {
        let (word, mask) = word_and_mask(position);
        self.0[word].fetch_or(mask, Ordering::Release) & mask == 0
    }

    /// Whether the bit at `position` is set.
    #[inline]
    pub(super) fn contains(&self, position: u16) -> bool {
        let (word, mask) = word_and_mask(position);
        self.0[word].load(Ordering::Acquire) & mask != 0
    }

    /// Sets all bits that are set in `words`; returns how many of them were 0.
    pub(super) fn insert_words(&self, words: &[u64; PAGE_WORDS]) -> u64 {
        let pairs = self.0.iter().zip(words);
        let new = pairs.map(|(own, &word)| word & !own.fetch_or(word, Ordering::Release));
        new.map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// A copy of the words. Bits set during the call may be missing.
    pub(super) fn words(&self) -> [u64; PAGE_WORDS] {
        array::from_fn(|at| self.0[at].load(Ordering::Acquire))
    }
}

/// The index of the word of a position, and the mask of its bit.
#[inline]
fn word_and_mask(position: u16) -> (usize, u64) {
    (usize::from(position >> 6), 1 << (position & 63))
}

/// The number of bits set in `words`.
pub(super) fn count(words: &[u64; PAGE_WORDS]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}
