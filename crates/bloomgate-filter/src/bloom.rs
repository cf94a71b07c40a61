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

/// A Bloom filter that sets all bits of a key in one cache line.
///
/// Lookups and inserts take `&self`, from any number of threads, without locks. A lookup fetches
/// one cache line and has no data-dependent branch. Keys can't be removed; build a new filter to
/// drop stale ones.
///
/// *Guarantees.* A [`contains`](BloomFilter::contains) that happens after an
/// [`insert`](BloomFilter::insert) of the same key returned is always `true`. An absent key passes
/// at the false-positive rate of the [`BloomParams`] as long as the filter holds no more keys than
/// it was sized for. The first guarantee also holds for an overfull filter;
/// [`stats`](BloomFilter::stats) gives its current false-positive rate.
///
/// ```
/// use bloomgate_filter::{
///     BloomFilter, BloomParams, FalsePositiveRate, HashAlgorithm, KeyedHasher, Secret,
/// };
///
/// let secret = Secret::new(b"replace with 32 random bytes")?;
/// let hasher = KeyedHasher::new(HashAlgorithm::Xxh3, &secret, &[7; 16]);
/// let params = BloomParams::new(10_000, FalsePositiveRate::new(0.001)?)?;
/// let filter = BloomFilter::new(params, hasher)?;
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

/// The most blocks that [`BloomFilter::stats`] reads: 4 MiB.
const MAX_SAMPLED_BLOCKS: usize = 65_536;

impl BloomFilter {
    /// An empty filter of the size of `params` that hashes with `hasher`.
    ///
    /// Allocates `params.bytes()` at once and writes zeros to all of it. An operating system that
    /// overcommits memory may grant the allocation and terminate the process when it writes to it;
    /// where that matters, compare `params.bytes()` with a limit first.
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

    /// The filter stored as `blocks` after `inserts` inserts.
    ///
    /// `None` unless the number of blocks is that of `params`.
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
    /// A copy made during inserts holds every key whose insert returned before the first word was
    /// read, and possibly parts of later ones.
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Adds `key`, given as canonical bytes. `true` if at least one of its bits was 0.
    ///
    /// The result is advisory. It can be `false` for a key that was never added (other keys set all
    /// of its bits), and `true` in two threads that add the same key concurrently. Does not
    /// allocate.
    #[inline]
    pub fn insert(&self, key: &[u8]) -> bool {
        self.insert_hash(self.hash(key))
    }

    /// Whether `key`, given as canonical bytes, may have been added; `false` is certain.
    ///
    /// Does not allocate. Takes about the same time for present and absent keys.
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
    /// Afterwards this filter contains every key that either filter contained. Keys added to
    /// `other` during the call may be left out. Costs a pass over both filters.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] if the filters differ in their parameters or their hashers: the bits of
    /// one have no meaning in the other. This filter is then unchanged.
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

    /// The statistics of the filter.
    ///
    /// The fill ratio is counted: over the whole filter up to 65,536 blocks (4 MiB, two million
    /// keys at a false-positive rate of 0.1 %), in larger filters over that number of evenly spaced
    /// blocks. The sample is fixed, so the fill ratio never decreases. Sampling adds an error of
    /// less than 0.1 % to the number of distinct keys in a full filter. Costs at most 65,536 memory
    /// accesses, which take about a millisecond, and sums of bounded length.
    pub fn stats(&self) -> Stats {
        let fill_ratio = self.fill_ratio();
        let by_fill = self.params.estimated_items(fill_ratio);
        let items = self.inserts.total();
        Stats {
            items,
            // For few keys in a large filter the number of inserts is a better bound than the
            // sample.
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

    /// The parameters that the filter was sized by.
    pub fn params(&self) -> &BloomParams {
        &self.params
    }

    /// The hasher of this filter.
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
    /// Prints parameters and statistics, neither bits nor the hash key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BloomFilter")
            .field("params", &self.params)
            .field("hasher", &self.hasher)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
