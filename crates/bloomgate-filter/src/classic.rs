//! The classic Bloom filter of the textbooks.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::alloc::try_vec_with_capacity;
use crate::error::Error;
use crate::hash::{KeyHash, KeyedHasher};
use crate::membership::{Family, Membership, Stats};
use crate::sizing::ClassicParams;

mod positions;
#[cfg(test)]
mod tests;

use positions::positions;

/// The most words that [`ClassicBloom::stats`] reads: 128 KiB, some tens of microseconds from the
/// processor's cache, about a millisecond from memory.
const MAX_SAMPLED_WORDS: usize = 16_384;

/// The textbook Bloom filter: m bits, of which a key sets up to k anywhere.
///
/// It is included for comparison. It needs the least memory of all Bloom filters for a
/// false-positive rate, but nearly every bit of a lookup is another cache line.
/// [`BloomFilter`](crate::BloomFilter) fetches one line and takes 5 % more memory at a rate of 1 %,
/// 9 % at 0.1 %, 81 % at one in a million. Lookups and inserts take `&self`, from any number of
/// threads, without locks. Keys can't be removed.
///
/// *Guarantees.* A [`contains`](ClassicBloom::contains) that happens after an
/// [`insert`](ClassicBloom::insert) of the same key returned is always `true`. An absent key passes
/// at the [`expected_rate`](ClassicParams::expected_rate) of the parameters.
///
/// # The bits of a key
///
/// The positions are part of every stored filter and never change. Let `a` and `b` be the 64-bit
/// halves of the hash: those that [`HashAlgorithm`](crate::HashAlgorithm) calls the block and the
/// bits. The k positions p₀, p₁ … among m bits are as follows; sums and products are modulo 2^64
/// except where a product is shifted:
///
/// ```text
/// xᵢ = mix(a + i · (b | 1))                    i = 0 … k − 1
/// mix(z):  z = (z ^ (z >> 30)) · 0xBF58476D1CE4E5B9
///          z = (z ^ (z >> 27)) · 0x94D049BB133111EB
///          z ^ (z >> 31)
/// pᵢ = (xᵢ · m) >> 64                          except that
/// p₁ = (x₁ · (m − 1)) >> 64, plus 1 if that is p₀ or more
/// ```
///
/// The xᵢ are the outputs of the generator SplitMix64 (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", 2014; the constants are Stafford's variant 13) with a seed and
/// an increment taken from the key's hash. The usual double hashing, pᵢ = a + i · b modulo m, is
/// cheaper, but its positions are dependent: two keys that agree in the first two positions agree
/// in all, which bounds the false-positive rate from below, and some increments repeat the first
/// position. p₁ is chosen among the bits other than p₀, so that a key sets at least two bits if k
/// is at least 2. Position p is bit p mod 64, counted from the least significant, of word p / 64.
///
/// ```
/// use bloomgate_filter::{
///     ClassicBloom, ClassicParams, FalsePositiveRate, HashAlgorithm, KeyedHasher, Secret,
/// };
///
/// let secret = Secret::new(b"replace with 32 random bytes")?;
/// let hasher = KeyedHasher::new(HashAlgorithm::Xxh3, &secret, &[7; 16]);
/// let params = ClassicParams::new(10_000, FalsePositiveRate::new(0.001)?)?;
/// let filter = ClassicBloom::new(params, hasher)?;
/// filter.insert(b"present");
/// assert!(filter.contains(b"present"));
/// assert_eq!(filter.stats().hashes, 10);
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
pub struct ClassicBloom {
    /// As many as the bits need. The spare bits of the last one are always 0.
    words: Box<[AtomicU64]>,
    hasher: KeyedHasher,
    params: ClassicParams,
    inserts: AtomicU64,
}

impl ClassicBloom {
    /// An empty filter of the size of `params` that hashes with `hasher`.
    ///
    /// Allocates `params.bytes()` at once and writes zeros to all of it. An operating system that
    /// overcommits memory may grant the allocation and terminate the process when it writes to it;
    /// where that matters, compare `params.bytes()` with a limit first.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] if the allocator refuses.
    pub fn new(params: ClassicParams, hasher: KeyedHasher) -> Result<Self, Error> {
        let mut words = try_vec_with_capacity(params.words(), params.bytes())?;
        words.resize_with(params.words() as usize, AtomicU64::default);
        Ok(Self { words: words.into_boxed_slice(), hasher, params, inserts: AtomicU64::new(0) })
    }

    /// The filter stored as `words` after `inserts` inserts.
    ///
    /// `None` unless the number of words is that of `params` and the spare bits of the last one are
    /// 0.
    pub(crate) fn from_words(
        params: ClassicParams,
        hasher: KeyedHasher,
        inserts: u64,
        words: Vec<u64>,
    ) -> Option<Self> {
        let spare = params.bits().wrapping_neg() % 64;
        let last = *words.last()?;
        if words.len() as u64 != params.words() || u64::from(last.leading_zeros()) < spare {
            return None;
        }
        let words = words.into_iter().map(AtomicU64::new).collect();
        Some(Self { words, hasher, params, inserts: AtomicU64::new(inserts) })
    }

    /// The words of the filter. Each is read when the iterator yields it.
    ///
    /// A copy made during inserts holds every key whose insert returned before the first word was
    /// read, and possibly parts of later ones.
    pub(crate) fn words(&self) -> impl ExactSizeIterator<Item = u64> {
        self.words.iter().map(|word| word.load(Ordering::Acquire))
    }

    /// Adds `key`, given as canonical bytes. `true` if at least one of its bits was 0.
    ///
    /// The result is advisory: it can be `false` for a key that was never added, and `true` in two
    /// threads that add the same key concurrently. Does not allocate.
    #[inline]
    pub fn insert(&self, key: &[u8]) -> bool {
        self.insert_hash(self.hash(key))
    }

    /// Whether `key`, given as canonical bytes, may have been added; `false` is certain.
    ///
    /// Does not allocate. Stops at the first bit that is 0, so absent keys take less time than
    /// present ones.
    #[inline]
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// [`insert`](ClassicBloom::insert) for a hash made by [`hash`](ClassicBloom::hash).
    #[inline]
    pub fn insert_hash(&self, hash: KeyHash) -> bool {
        let mut is_new = false;
        for (word, mask) in self.words_and_masks(hash) {
            // An atomic OR cannot lose bits that another thread sets in the same word. With release
            // here and acquire in `contains`, a thread that finds a key also sees the writes made
            // before the insert.
            is_new |= word.fetch_or(mask, Ordering::Release) & mask == 0;
        }
        self.inserts.fetch_add(1, Ordering::Relaxed);
        is_new
    }

    /// [`contains`](ClassicBloom::contains) for a hash made by [`hash`](ClassicBloom::hash).
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: KeyHash) -> bool {
        self.words_and_masks(hash).all(|(word, mask)| word.load(Ordering::Acquire) & mask != 0)
    }

    /// The hash of `key` under this filter's hasher.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        self.hasher.hash(key)
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
        for (word, from) in self.words.iter().zip(&other.words) {
            word.fetch_or(from.load(Ordering::Acquire), Ordering::Release);
        }
        self.inserts.fetch_add(other.inserts.load(Ordering::Relaxed), Ordering::Relaxed);
        Ok(())
    }

    /// The statistics of the filter.
    ///
    /// The fill ratio is counted: over all bits in filters of up to 2^20 bits, in larger filters
    /// over a fixed sample of at least 8,192 evenly spaced words. The relative error of the sample
    /// is a few thousandths in a half-full filter, and larger in an almost empty one. The sample is
    /// fixed, so the fill ratio never decreases. Costs at most about a millisecond.
    pub fn stats(&self) -> Stats {
        let fill_ratio = self.fill_ratio();
        Stats {
            items: self.inserts.load(Ordering::Relaxed),
            distinct: self.params.estimated_items(fill_ratio),
            capacity: Some(self.params.items()),
            bytes: self.params.bytes(),
            hashes: self.params.hashes(),
            fill_ratio,
            expected_false_positive_rate: self.params.expected_rate(self.params.items()),
            current_false_positive_rate: self.params.rate_at_fill(fill_ratio),
        }
    }

    /// The parameters that the filter was sized by.
    pub fn params(&self) -> &ClassicParams {
        &self.params
    }

    /// The hasher of this filter.
    pub fn hasher(&self) -> &KeyedHasher {
        &self.hasher
    }

    /// The word of each position of `hash`, and the mask of its bit.
    fn words_and_masks(&self, hash: KeyHash) -> impl Iterator<Item = (&AtomicU64, u64)> {
        positions(hash, self.params.bits(), self.params.hashes())
            .map(|at| (&self.words[(at / 64) as usize], 1 << (at % 64)))
    }

    /// The share of set bits in the sample.
    fn fill_ratio(&self) -> f64 {
        // Every `step`th word: the sample is fixed, so the share can only grow.
        let step = self.words.len().div_ceil(MAX_SAMPLED_WORDS);
        let (mut set, mut counted) = (0, 0);
        for at in (0..self.words.len()).step_by(step) {
            set += u64::from(self.words[at].load(Ordering::Relaxed).count_ones());
            // The last word has spare bits that no key sets.
            counted += (self.params.bits() - at as u64 * 64).min(64);
        }
        set as f64 / counted as f64
    }
}

impl Membership for ClassicBloom {
    fn contains(&self, key: &[u8]) -> bool {
        ClassicBloom::contains(self, key)
    }

    fn insert(&self, key: &[u8]) -> bool {
        ClassicBloom::insert(self, key)
    }

    fn stats(&self) -> Stats {
        ClassicBloom::stats(self)
    }

    fn family(&self) -> Family {
        Family::Classic
    }
}

impl fmt::Debug for ClassicBloom {
    /// Prints parameters and statistics, neither bits nor the hash key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassicBloom")
            .field("params", &self.params)
            .field("hasher", &self.hasher)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
