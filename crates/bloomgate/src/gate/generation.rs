//! One build of the filter.

use bloomgate_filter::{
    Bitmap, BloomFilter, ExactSet, Family, Hash, KeyedHasher, Membership, Plan, Secret, Stats,
};

use crate::error::Error;

/// What a generation is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Blueprint {
    Bloom(Plan, Hash),
    Bitmap,
    Exact,
}

/// One build of the filter. A Bloom filter has a hash key of its own: a rebuild is a rotation, and
/// a false positive that somebody harvested dies with it.
#[derive(Debug)]
pub(crate) struct Generation {
    number: u64,
    filter: Box<dyn Membership>,
}

impl Generation {
    pub(crate) fn new(number: u64, blueprint: Blueprint, secret: &Secret) -> Result<Self, Error> {
        let filter: Box<dyn Membership> = match blueprint {
            Blueprint::Bloom(plan, hash) => {
                let nonce: [u8; 16] = rand::random();
                let hasher = KeyedHasher::new(hash, secret, &nonce);
                Box::new(BloomFilter::new(plan, hasher).map_err(|e| Error::Filter(e.into()))?)
            }
            Blueprint::Bitmap => Box::new(Bitmap::new()),
            Blueprint::Exact => Box::new(ExactSet::new()),
        };
        Ok(Self { number, filter })
    }

    /// Counts up from 1 in each process.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn family(&self) -> Family {
        self.filter.family()
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
