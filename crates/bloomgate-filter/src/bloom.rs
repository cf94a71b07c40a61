//! The cache-line-blocked Bloom filter.

use std::fmt;

use crate::alloc::try_vec_with_capacity;
use crate::block::Block;
use crate::error::Error;
use crate::hash::{KeyHash, KeyedHasher};
use crate::layout::{BITS_PER_KEY, BLOCK_BITS, block_index};
use crate::membership::{Family, Membership, Stats};
use crate::platform::prefetch::prefetch;
use crate::platform::probe::Probe;
use crate::sizing::BloomParams;
use crate::striped_counter::StripedCounter;

mod batch;
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
/// at the rate of the [`BloomParams`], as long as no more items are in than were planned. An overfull
/// filter still holds the first half of the promise; [`stats`](BloomFilter::stats) tells how far
/// the second has slipped.
///
/// ```
/// use bloomgate_filter::{BloomFilter, HashAlgorithm, KeyedHasher, BloomParams, FalsePositiveRate, Secret};
///
/// let hasher = KeyedHasher::new(HashAlgorithm::Xxh3, &Secret::generate()?, &[7; 16]);
/// let filter = BloomFilter::new(BloomParams::new(10_000, FalsePositiveRate::new(0.001)?)?, hasher)?;
/// filter.insert(b"present");
/// assert!(filter.contains(b"present"));
/// assert_eq!(filter.stats().items, 1);
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
pub struct BloomFilter {
    blocks: Box<[Block]>,
    hasher: KeyedHasher,
    probe: Probe,
    params: BloomParams,
    inserts: StripedCounter,
}

/// Blocks that [`BloomFilter::stats`] looks at, at most: 4 MiB.
const MAX_SAMPLED_BLOCKS: usize = 65_536;

impl BloomFilter {
    /// An empty filter of the size of `params`, hashing with `hasher`.
    ///
    /// Allocates `params.bytes()` at once and writes zeros to all of it. Some operating systems grant
    /// more memory than they have and only fail when it is written to; where that matters, compare
    /// `params.bytes()` with a limit of your own first.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] if the allocator refuses.
    pub fn new(params: BloomParams, hasher: KeyedHasher) -> Result<Self, Error> {
        let mut blocks = try_vec_with_capacity(params.blocks(), params.bytes())?;
        blocks.resize_with(params.blocks() as usize, Block::default);
        Ok(Self {
            blocks: blocks.into_boxed_slice(),
            hasher,
            probe: Probe::detect(),
            params,
            inserts: StripedCounter::starting_at(0),
        })
    }

    /// The filter that was stored as `blocks` after `inserts` inserts.
    ///
    /// `None` unless there are exactly the blocks that `params` needs.
    pub(crate) fn from_blocks(
        params: BloomParams,
        hasher: KeyedHasher,
        inserts: u64,
        blocks: Vec<Block>,
    ) -> Option<Self> {
        (blocks.len() as u64 == params.blocks()).then(|| Self {
            blocks: blocks.into_boxed_slice(),
            hasher,
            probe: Probe::detect(),
            params,
            inserts: StripedCounter::starting_at(inserts),
        })
    }

    /// The blocks of the filter.
    ///
    /// While others insert, what is copied of them holds every key whose insert had returned before
    /// the first word was read, and perhaps parts of later ones.
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Adds `key`, given as canonical bytes. `true` if that set a bit which was 0.
    ///
    /// The answer is advice, no more. `false` may be said of a key that was never added (all its
    /// bits were set by others), and `true` to two threads that add the same key at once, each
    /// found some of its bits unset. Does not allocate.
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
        let new = self.block(hash).insert(hash.bits);
        self.inserts.add(1);
        new
    }

    /// [`contains`](BloomFilter::contains) for a hash made by [`hash`](BloomFilter::hash).
    #[inline(always)]
    #[must_use]
    pub fn contains_hash(&self, hash: KeyHash) -> bool {
        self.probe.contains(self.block(hash), hash.bits)
    }

    /// The hash of `key` under this filter's hasher.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        self.hasher.hash(key)
    }

    #[inline(always)]
    fn block(&self, hash: KeyHash) -> &Block {
        &self.blocks[block_index(hash, self.blocks.len() as u64) as usize]
    }

    /// Adds all keys of `other`.
    ///
    /// Afterwards a key is in this filter if it was in either. Keys that are added to `other`
    /// meanwhile may or may not come along. Costs a pass over both filters.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] if the filters differ in size, in what they were planned for, or in their
    /// hashers: bits of one would mean nothing in the other. This filter is then as it was.
    pub fn merge(&self, other: &Self) -> Result<(), Error> {
        if self.params != other.params {
            return Err(Error::Mismatch { field: "params" });
        }
        if !self.hasher.same_as(&other.hasher) {
            return Err(Error::Mismatch { field: "hasher" });
        }
        self.inserts.add(other.inserts.total());
        for (block, other) in self.blocks.iter().zip(&other.blocks) {
            block.merge(other);
        }
        Ok(())
    }

    /// The figures of the filter.
    ///
    /// The fill ratio is counted: over the whole filter up to 65,536 blocks (4 MiB, two million keys
    /// at a rate of 0.1 %), over as many blocks spread evenly beyond. They are always the same ones,
    /// so the figures never fall. Sampling adds an error of less than a tenth of a percent to the
    /// number of distinct items in a full filter. Costs at most 65,536 fetches from memory, which
    /// is about a millisecond, and sums of bounded length.
    pub fn stats(&self) -> Stats {
        let fill_ratio = self.fill_ratio();
        let by_fill = self.params.estimated_items(fill_ratio);
        let items = self.inserts.total();
        Stats {
            items,
            // A few keys in a large filter are counted better than sampled.
            distinct: by_fill.map(|estimate| estimate.min(items)),
            capacity: Some(self.params.items()),
            bytes: self.params.bytes(),
            hashes: BITS_PER_KEY,
            fill_ratio,
            expected_false_positive_rate: self.params.expected_rate(self.params.items()),
            current_false_positive_rate: by_fill
                .map_or(1.0, |items| self.params.expected_rate(items)),
        }
    }

    fn fill_ratio(&self) -> f64 {
        let count = self.blocks.len();
        let sampled = count.min(MAX_SAMPLED_BLOCKS);
        let set_bits: u64 = (0..sampled)
            .map(|at| at as u128 * count as u128 / sampled as u128)
            .map(|at| u64::from(self.blocks[at as usize].count_ones()))
            .sum();
        set_bits as f64 / (sampled as u64 * BLOCK_BITS) as f64
    }

    /// The params that gave the filter its size.
    pub fn params(&self) -> &BloomParams {
        &self.params
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

    fn contains_many(&self, keys: &[&[u8]], answers: &mut Vec<bool>) {
        BloomFilter::contains_many(self, keys, answers);
    }

    fn insert_many(&self, keys: &[&[u8]]) {
        BloomFilter::insert_many(self, keys);
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
            .field("params", &self.params)
            .field("hasher", &self.hasher)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
