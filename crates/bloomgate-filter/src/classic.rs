//! The classic Bloom filter, as textbooks describe it.

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

/// The most words that [`ClassicBloom::stats`] looks at: 128 KiB, some tens of microseconds while
/// they are in the processor's cache, about a millisecond from memory.
const MAX_SAMPLED_WORDS: usize = 16_384;

/// The textbook Bloom filter: m bits, of which every key sets up to k anywhere.
///
/// It is here to compare with. It has the smallest size a Bloom filter can have for a rate, but
/// nearly every bit of a lookup is another cache line. [`BloomFilter`](crate::BloomFilter) fetches
/// one line and takes 5 % more memory at a rate of 1 %, 9 % at 0.1 %, 81 % at one in a million.
/// Lookups and inserts take `&self`, from any number of threads, without locks. There is no
/// removal.
///
/// *Promise.* A [`contains`](ClassicBloom::contains) that happens after an
/// [`insert`](ClassicBloom::insert) of the same key returned is `true`, always. An absent key
/// passes at the [`expected_rate`](ClassicParams::expected_rate) of the params.
///
/// # The bits of a key
///
/// They are part of every stored filter and never change. From a hash whose 64-bit halves are `a`
/// and `b`, which are those that give [`HashAlgorithm`](crate::HashAlgorithm)'s block and bits, the k positions
/// p₀, p₁ … among m bits are, with all sums and products modulo 2^64 except where a product is
/// shifted:
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
/// The xᵢ are what the generator SplitMix64 puts out (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", 2014; the constants are Stafford's variant 13) from a seed and
/// an increment that are the key's own. The usual "double hashing", pᵢ = a + i · b modulo m, is
/// cheaper, but its positions hang together: two keys that agree in the first two agree in all,
/// which sets a floor to the rate, and some steps return to the first position at once. p₁ is
/// chosen among the bits that p₀ left, so that a key sets at least two bits if k is at least 2.
/// Position p is bit p mod 64, counted from the least significant, of word p / 64.
///
/// ```
/// use bloomgate_filter::{ClassicBloom, ClassicParams, HashAlgorithm, KeyedHasher, FalsePositiveRate, Secret};
///
/// let hasher = KeyedHasher::new(HashAlgorithm::Xxh3, &Secret::generate()?, &[7; 16]);
/// let filter = ClassicBloom::new(ClassicParams::new(10_000, FalsePositiveRate::new(0.001)?)?, hasher)?;
/// filter.insert(b"present");
/// assert!(filter.contains(b"present"));
/// assert_eq!(filter.stats().hashes, 10);
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
pub struct ClassicBloom {
    /// As many as the params's bits need. The spare bits of the last one are always 0.
    words: Box<[AtomicU64]>,
    hasher: KeyedHasher,
    params: ClassicParams,
    inserts: AtomicU64,
}

impl ClassicBloom {
    /// An empty filter of the size of `params`, hashing with `hasher`.
    ///
    /// Allocates `params.bytes()` at once and writes zeros to all of it. Some operating systems grant
    /// more memory than they have and only fail when it is written to; where that matters, compare
    /// `params.bytes()` with a limit of your own first.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] if the allocator refuses.
    pub fn new(params: ClassicParams, hasher: KeyedHasher) -> Result<Self, Error> {
        let mut words = try_vec_with_capacity(params.words(), params.bytes())?;
        words.resize_with(params.words() as usize, AtomicU64::default);
        Ok(Self { words: words.into_boxed_slice(), hasher, params, inserts: AtomicU64::new(0) })
    }

    /// The filter that was stored as `words` after `inserts` inserts.
    ///
    /// `None` unless there are exactly the words that `params` needs, with the spare bits of the last
    /// one 0.
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

    /// The words of the filter, each read at the moment it is asked for.
    ///
    /// While others insert, the copy holds every key whose insert had returned before the first
    /// word was read, and perhaps parts of later ones.
    pub(crate) fn words(&self) -> impl ExactSizeIterator<Item = u64> {
        self.words.iter().map(|word| word.load(Ordering::Acquire))
    }

    /// Adds `key`, given as canonical bytes. `true` if that set a bit which was 0.
    ///
    /// The answer is advice, no more: `false` may be said of a key that was never added, and
    /// `true` to two threads that add the same key at once. Does not allocate.
    #[inline]
    pub fn insert(&self, key: &[u8]) -> bool {
        self.insert_hash(self.hash(key))
    }

    /// Whether `key`, given as canonical bytes, may have been added; `false` is certain.
    ///
    /// Does not allocate. Stops at the first bit that is 0, so that absent keys are answered
    /// sooner than present ones.
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
            // An atomic or cannot lose bits that another thread sets in the same word. Release
            // here and acquire in `contains` let whoever finds a key also see what was done before
            // it was inserted.
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

    /// Adds all that is in `other`, as if every insert into it had been made here as well.
    ///
    /// Costs one pass over both. Inserts that run in `other` meanwhile may or may not come along.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] if the plans differ, or the algorithm, secret or nonce of the hashers;
    /// `self` is then as it was.
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

    /// The figures of the filter.
    ///
    /// Bits are counted when they are asked for: all of them in filters of up to 2^20, in larger
    /// ones those of a fixed sample of at least 8,192 words, spread evenly. A sample is off by some
    /// thousandths of a half-full filter's items, and by more, relatively, in one that is almost
    /// empty. Costs at most about a millisecond. The fill never goes down from call to call.
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

    /// The params that gave the filter its size.
    pub fn params(&self) -> &ClassicParams {
        &self.params
    }

    /// The hasher that places keys in this filter.
    pub fn hasher(&self) -> &KeyedHasher {
        &self.hasher
    }

    /// The word and the bit in it of each position of `hash`.
    fn words_and_masks(&self, hash: KeyHash) -> impl Iterator<Item = (&AtomicU64, u64)> {
        positions(hash, self.params.bits(), self.params.hashes())
            .map(|at| (&self.words[(at / 64) as usize], 1 << (at % 64)))
    }

    /// The share of set bits among those that are counted.
    fn fill_ratio(&self) -> f64 {
        // One word in `step`; because they are always the same, the share can only grow.
        let step = self.words.len().div_ceil(MAX_SAMPLED_WORDS);
        let (mut set, mut counted) = (0, 0);
        for at in (0..self.words.len()).step_by(step) {
            set += u64::from(self.words[at].load(Ordering::Relaxed).count_ones());
            // The last word has spare bits that no key can set.
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
    /// Size and figures; the bits and the key stay out of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassicBloom")
            .field("params", &self.params)
            .field("hasher", &self.hasher)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
