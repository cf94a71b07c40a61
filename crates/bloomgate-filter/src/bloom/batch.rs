//! Batched lookups and inserts with prefetching.

use super::{Block, BloomFilter, prefetch};

/// Keys whose blocks are prefetched while the previous ones are processed: enough to hide the
/// latency of main memory, few enough for their lines to stay in the first-level cache.
const PREFETCH_DISTANCE: usize = 32;

impl BloomFilter {
    /// [`contains`](BloomFilter::contains) for each of `keys`. Replaces the contents of `answers`
    /// with one answer per key, in their order.
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
    /// filter.insert_many(&[1_u64.to_le_bytes(), 2_u64.to_le_bytes()]);
    ///
    /// let mut answers = Vec::new();
    /// filter.contains_many(&["1", "2"], &mut answers);
    /// assert_eq!(answers, [false, false]); // the texts are not the integers
    /// filter.contains_many(&[[2, 0, 0, 0, 0, 0, 0, 0]], &mut answers);
    /// assert_eq!(answers, [true]);
    /// # Ok::<(), bloomgate_filter::Error>(())
    /// ```
    pub fn contains_many<K: AsRef<[u8]>>(&self, keys: &[K], answers: &mut Vec<bool>) {
        answers.clear();
        answers.reserve(keys.len());
        self.each_chunk(keys, |lookups| self.probe.contains_each(lookups, answers));
    }

    /// [`insert`](BloomFilter::insert) for each of `keys`.
    pub fn insert_many<K: AsRef<[u8]>>(&self, keys: &[K]) {
        self.inserts.add(keys.len() as u64);
        self.each_chunk(keys, |lookups| {
            for (block, bits) in lookups {
                block.set(*bits);
            }
        });
    }

    /// Calls `work` with the block and hash bits of each of `keys`, in chunks and in their order.
    /// The blocks of a chunk are prefetched before the previous chunk is processed.
    fn each_chunk<K: AsRef<[u8]>>(&self, keys: &[K], mut work: impl FnMut(&[(&Block, u64)])) {
        let unused = (&self.blocks[0], 0);
        let (mut one, mut other) = ([unused; PREFETCH_DISTANCE], [unused; PREFETCH_DISTANCE]);
        let (mut current, mut next) = (&mut one, &mut other);
        let mut filled = 0;
        for chunk in keys.chunks(PREFETCH_DISTANCE) {
            let mut lookups = next.iter_mut();
            self.hasher.hash_each(chunk, |hash| {
                let block = self.block(hash);
                prefetch(block);
                if let Some(lookup) = lookups.next() {
                    *lookup = (block, hash.bits);
                }
            });
            work(&current[..filled]);
            std::mem::swap(&mut current, &mut next);
            filled = chunk.len();
        }
        work(&current[..filled]);
    }
}
