//! A Bloom filter block: one cache line of bits that threads share.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::layout::{BLOCK_BYTES, WORDS, word_masks};

#[cfg(test)]
mod tests;

/// A word of bits that threads share.
///
/// The crate uses [`AtomicU64`]. The trait exists so that the model checker in the tests can
/// substitute its own atomic and explore the code below instead of a copy of it.
pub(crate) trait Word {
    /// The bits that are set.
    fn load(&self, order: Ordering) -> u64;

    /// Sets the bits of `mask` and no others, in one indivisible step.
    fn set(&self, mask: u64, order: Ordering);
}

impl Word for AtomicU64 {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }

    #[inline]
    fn set(&self, mask: u64, order: Ordering) {
        // The previous value is ignored: using it would turn one `lock or` into a loop around a
        // compare-and-exchange.
        self.fetch_or(mask, order);
    }
}

/// 512 bits, aligned so that they never span two cache lines.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Block<W = AtomicU64>(pub(crate) [W; WORDS]);

impl<W: Word> Block<W> {
    /// Sets the bits of a key, given as the `bits` of its hash. `true` if at least one of them was
    /// 0.
    #[inline]
    pub(crate) fn insert(&self, bits: u64) -> bool {
        // All loads come before the first write: a locked instruction delays the loads after it.
        let mut missing = 0;
        for (word, mask) in word_masks(bits) {
            missing |= mask & !self.0[word].load(Ordering::Relaxed);
        }
        self.set(bits);
        missing != 0
    }

    /// Sets the bits of a key without reading their previous values.
    #[inline]
    pub(crate) fn set(&self, bits: u64) {
        for (word, mask) in word_masks(bits) {
            // An atomic OR cannot lose bits that another thread sets in the same word.
            //
            // Guarantee: a lookup that happens after this insert returned finds its bits. The
            // coherence of each single atomic suffices for that. Release here and acquire in
            // `contains` add that a thread which finds a key also sees the writes made before the
            // insert. They cost nothing on x86 and next to nothing elsewhere. Inserts of different
            // threads are unordered, and a running insert may be seen in part, which reads as
            // absent.
            self.0[word].set(mask, Ordering::Release);
        }
    }

    /// Whether all bits of a key are set.
    #[inline]
    pub(crate) fn contains(&self, bits: u64) -> bool {
        let mut missing = 0;
        for (word, mask) in word_masks(bits) {
            // All four words are always read: they share a cache line, and the mispredictions of an
            // early exit would cost more than it saves.
            missing |= mask & !self.0[word].load(Ordering::Acquire);
        }
        missing == 0
    }

    /// The number of bits that are set.
    pub(crate) fn count_ones(&self) -> u32 {
        self.0.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum()
    }

    /// Sets every bit that is set in `other`.
    pub(crate) fn merge(&self, other: &Self) {
        for (word, other) in self.0.iter().zip(&other.0) {
            word.set(other.load(Ordering::Acquire), Ordering::Release);
        }
    }
}

impl Block {
    /// The block stored as `bytes`: its words in order, little-endian.
    #[inline]
    pub(crate) fn from_le_bytes(bytes: &[u8; BLOCK_BYTES as usize]) -> Self {
        let (words, _) = bytes.as_chunks();
        Self(array::from_fn(|at| AtomicU64::new(u64::from_le_bytes(words[at]))))
    }

    /// The stored form of the block. Each word is read once, when it is copied.
    #[inline]
    pub(crate) fn to_le_bytes(&self) -> [u8; BLOCK_BYTES as usize] {
        let mut bytes = [0; BLOCK_BYTES as usize];
        let (words, _) = bytes.as_chunks_mut();
        for (stored, word) in words.iter_mut().zip(&self.0) {
            *stored = word.load(Ordering::Acquire).to_le_bytes();
        }
        bytes
    }
}
