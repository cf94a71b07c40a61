//! One build of the filter.

use bloomgate_filter::{BloomFilter, Hash, KeyedHasher, Plan, Secret, Stats};

use crate::error::Error;

/// One build of the filter, under a hash key of its own: a rebuild is a rotation, and a false
/// positive that somebody harvested dies with it.
#[derive(Debug)]
pub(crate) struct Generation {
    number: u64,
    filter: BloomFilter,
}

impl Generation {
    pub(crate) fn new(number: u64, plan: Plan, hash: Hash, secret: &Secret) -> Result<Self, Error> {
        let nonce: [u8; 16] = rand::random();
        let hasher = KeyedHasher::new(hash, secret, &nonce);
        let filter = BloomFilter::new(plan, hasher).map_err(|e| Error::Filter(e.into()))?;
        Ok(Self { number, filter })
    }

    /// Counts up from 1 in each process.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn family(&self) -> &'static str {
        bloomgate_filter::Family::Bloom.name()
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.filter.contains(key)
    }

    pub(crate) fn insert(&self, key: &[u8]) {
        // Whether a bit was new is advisory and says nothing that the gate needs.
        let _ = self.filter.insert(key);
    }

    pub(crate) fn stats(&self) -> Stats {
        self.filter.stats()
    }
}
