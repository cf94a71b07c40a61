//! The cache-line-blocked Bloom filter.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::hash::{KeyHash, KeyedHasher};
use crate::layout::{BITS_PER_KEY, WORDS, block_index, picks};
use crate::membership::{Family, Membership, Stats};
use crate::sizing::Plan;
use crate::tally::Tally;

#[cfg(test)]
mod tests;

/// A Bloom filter whose every key lives in one cache line.
///
/// Lookups and inserts take `&self`, from any number of threads, without locks. A lookup fetches
/// one line of memory and has no branch that depends on what it finds. There is no removal: a
/// filter leaves when a newer one replaces it.
///
/// *Promise.* A [`contains`](BloomFilter::contains) that happens after an
/// [`insert`](BloomFilter::insert) of the same key returned is `true`, always. An absent key passes
/// at the rate of the [`Plan`], as long as no more items are in than were planned. An overfull
/// filter still holds the first half of the promise; [`stats`](BloomFilter::stats) tells how far
/// the second has slipped.
///
/// ```
/// use bloomgate_filter::{BloomFilter, Hash, KeyedHasher, Plan, Rate, Secret};
///
/// let hasher = KeyedHasher::new(Hash::Xxh3, &Secret::generate()?, &[7; 16]);
/// let filter = BloomFilter::new(Plan::new(10_000, Rate::new(0.001)?)?, hasher)?;
/// filter.insert(b"present");
/// assert!(filter.contains(b"present"));
/// assert_eq!(filter.stats().items, 1);
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
pub struct BloomFilter {
    blocks: Box<[Block]>,
    hasher: KeyedHasher,
    plan: Plan,
    tally: Tally,
}

/// One cache line of bits.
#[repr(align(64))]
struct Block([AtomicU64; WORDS]);

impl BloomFilter {
    /// An empty filter of the size of `plan`, hashing with `hasher`.
    ///
    /// Allocates `plan.bytes()` at once and writes zeros to all of it. Some operating systems grant
    /// more memory than they have and only fail when it is written to; where that matters, compare
    /// `plan.bytes()` with a limit of your own first.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] if the allocator refuses.
    pub fn new(plan: Plan, hasher: KeyedHasher) -> Result<Self, Error> {
        let refused = Error::OutOfMemory { bytes: plan.bytes() };
        let Ok(count) = usize::try_from(plan.blocks()) else {
            return Err(refused);
        };
        let mut blocks = Vec::new();
        if blocks.try_reserve_exact(count).is_err() {
            return Err(refused);
        }
        blocks.resize_with(count, || Block(Default::default()));
        Ok(Self { blocks: blocks.into_boxed_slice(), hasher, plan, tally: Tally::default() })
    }

    /// Adds `key`, given as canonical bytes. `true` if that set a bit which was 0.
    ///
    /// The answer is advice, no more. `false` may be said of a key that was never added (all its
    /// bits were set by others), and `true` to two threads that add the same key at once, each
    /// having set some of its bits. Of all the calls for a key whose bits were not all set before,
    /// at least one says `true`. Does not allocate.
    #[inline]
    pub fn insert(&self, key: &[u8]) -> bool {
        self.insert_hash(self.hash(key))
    }

    /// Whether `key`, given as canonical bytes, may have been added; `false` is certain.
    ///
    /// Does not allocate. Takes about the same time for present and for absent keys.
    #[inline]
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// [`insert`](BloomFilter::insert) for a hash made by [`hash`](BloomFilter::hash).
    #[inline]
    pub fn insert_hash(&self, hash: KeyHash) -> bool {
        let index = block_index(hash, self.blocks.len() as u64);
        let block = &self.blocks[index as usize];
        let mut set_bits = 0;
        for (word, mask) in picks(hash) {
            // An atomic or cannot lose bits that another thread sets in the same word.
            //
            // What is promised: a read that happens after this insert returned sees its bits.
            // Coherence of each single atomic gives that already. Release here and acquire in
            // `contains` add that whoever finds a key also sees what was done before it was
            // inserted. They cost nothing on x86 and next to nothing elsewhere. There is no order
            // among inserts of different threads, and an insert that is still running may be seen
            // in part, which reads as "not yet".
            let before = block.0[word].fetch_or(mask, Ordering::Release);
            set_bits += (mask & !before).count_ones();
        }
        self.tally.add(index, set_bits);
        set_bits > 0
    }

    /// [`contains`](BloomFilter::contains) for a hash made by [`hash`](BloomFilter::hash).
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: KeyHash) -> bool {
        let index = block_index(hash, self.blocks.len() as u64);
        let block = &self.blocks[index as usize];
        let mut missing = 0;
        for (word, mask) in picks(hash) {
            // All four words are always read: they share a cache line, and a branch that leaves
            // early would be mispredicted more often than it saved anything.
            missing |= mask & !block.0[word].load(Ordering::Acquire);
        }
        missing == 0
    }

    /// The hash of `key` under this filter's hasher.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        self.hasher.hash(key)
    }

    /// The figures of the filter.
    ///
    /// Constant time, some microseconds: bits are counted as they are set, not by looking through
    /// the filter, and the rates are sums of bounded length.
    pub fn stats(&self) -> Stats {
        let (items, set_bits) = self.tally.totals();
        let fill_ratio = set_bits as f64 / self.plan.bits() as f64;
        let distinct = self.plan.estimated_items(fill_ratio);
        Stats {
            items,
            distinct,
            capacity: Some(self.plan.items()),
            bytes: self.plan.bytes(),
            hashes: BITS_PER_KEY,
            fill_ratio,
            expected_false_positive_rate: self.plan.expected_rate(self.plan.items()),
            present_false_positive_rate: distinct
                .map_or(1.0, |items| self.plan.expected_rate(items)),
        }
    }

    /// The plan that gave the filter its size.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The hasher that places keys in this filter.
    pub fn hasher(&self) -> &KeyedHasher {
        &self.hasher
    }
}

impl Membership for BloomFilter {
    fn contains(&self, key: &[u8]) -> bool {
        BloomFilter::contains(self, key)
    }

    fn insert(&self, key: &[u8]) -> bool {
        BloomFilter::insert(self, key)
    }

    fn stats(&self) -> Stats {
        BloomFilter::stats(self)
    }

    fn family(&self) -> Family {
        Family::Bloom
    }
}

impl fmt::Debug for BloomFilter {
    /// Size and figures; the bits and the key stay out of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BloomFilter")
            .field("plan", &self.plan)
            .field("hasher", &self.hasher)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
