//! One build of the filter.

use bloomgate_filter::{
    Bitmap, BloomFilter, BloomParams, ExactSet, Family, HashAlgorithm, KeyedHasher, Membership,
    Secret, Stats,
};

use crate::error::Error;

/// What a generation is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GenerationSpec {
    Bloom(BloomParams, HashAlgorithm),
    Bitmap,
    Exact,
}

/// One build of the filter. A Bloom filter has a hash key of its own: a rebuild is a rotation, and
/// a false positive that somebody harvested dies with it.
#[derive(Debug)]
pub(crate) struct Generation {
    number: u64,
    filter: Filter,
}

/// Concrete types, so that a check, which knows the length of its key, is compiled as one piece: a
/// trait object takes half as long again.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one in a generation; a box is a detour")]
enum Filter {
    Bloom(BloomFilter),
    Bitmap(Bitmap),
    Exact(ExactSet),
}

impl Filter {
    /// For everything that isn't a check.
    fn as_membership(&self) -> &dyn Membership {
        match self {
            Self::Bloom(filter) => filter,
            Self::Bitmap(filter) => filter,
            Self::Exact(filter) => filter,
        }
    }
}

impl Generation {
    pub(crate) fn new(number: u64, spec: GenerationSpec, secret: &Secret) -> Result<Self, Error> {
        let filter = match spec {
            GenerationSpec::Bloom(plan, hash) => {
                let nonce: [u8; 16] = rand::random();
                let hasher = KeyedHasher::new(hash, secret, &nonce);
                let filter = BloomFilter::new(plan, hasher);
                Filter::Bloom(filter.map_err(|e| Error::Filter(e.into()))?)
            }
            GenerationSpec::Bitmap => Filter::Bitmap(Bitmap::new()),
            GenerationSpec::Exact => Filter::Exact(ExactSet::new()),
        };
        Ok(Self { number, filter })
    }

    /// Counts up from 1 in each process.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn family(&self) -> Family {
        self.filter.as_membership().family()
    }

    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        match &self.filter {
            Filter::Bloom(filter) => filter.contains(key),
            Filter::Bitmap(filter) => filter.contains(key),
            Filter::Exact(filter) => filter.contains(key),
        }
    }

    pub(crate) fn insert(&self, key: &[u8]) {
        // Whether a bit was new is advisory and says nothing that the gate needs.
        let _ = self.filter.as_membership().insert(key);
    }

    pub(crate) fn stats(&self) -> Stats {
        self.filter.as_membership().stats()
    }
}
