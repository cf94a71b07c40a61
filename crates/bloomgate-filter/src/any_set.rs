//! A set whose family is known at run time.

use crate::bitmap::Bitmap;
use crate::bloom::BloomFilter;
use crate::classic::ClassicBloom;
use crate::exact::ExactSet;
use crate::membership::{Family, Membership, Stats};
use crate::snapshot::Persist;

/// A set of any family: one that was chosen by a setting, or read from a snapshot.
///
/// Lookups cost less than those of a trait object, because each family's are compiled in place.
///
/// ```
/// use bloomgate_filter::{AnySet, ExactSet, Family, Membership as _};
///
/// let set = AnySet::from(ExactSet::new());
/// set.insert(b"key");
/// assert!(set.contains(b"key") && !set.contains(b"absent"));
/// assert_eq!(set.family(), Family::Exact);
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum AnySet {
    /// A cache-line-blocked Bloom filter.
    Bloom(BloomFilter),
    /// A textbook Bloom filter.
    Classic(ClassicBloom),
    /// An exact set of integers.
    Bitmap(Bitmap),
    /// An exact set of keys of any kind.
    Exact(ExactSet),
}

impl AnySet {
    /// For everything that isn't a single lookup.
    pub(crate) fn as_set(&self) -> &dyn Persist {
        match self {
            Self::Bloom(set) => set,
            Self::Classic(set) => set,
            Self::Bitmap(set) => set,
            Self::Exact(set) => set,
        }
    }
}

impl Membership for AnySet {
    #[inline]
    fn contains(&self, key: &[u8]) -> bool {
        match self {
            Self::Bloom(set) => set.contains(key),
            Self::Classic(set) => set.contains(key),
            Self::Bitmap(set) => set.contains(key),
            Self::Exact(set) => set.contains(key),
        }
    }

    fn insert(&self, key: &[u8]) -> bool {
        self.as_set().insert(key)
    }

    fn contains_many(&self, keys: &[&[u8]], answers: &mut Vec<bool>) {
        self.as_set().contains_many(keys, answers);
    }

    fn insert_many(&self, keys: &[&[u8]]) {
        self.as_set().insert_many(keys);
    }

    fn stats(&self) -> Stats {
        self.as_set().stats()
    }

    fn family(&self) -> Family {
        self.as_set().family()
    }
}

impl From<BloomFilter> for AnySet {
    fn from(set: BloomFilter) -> Self {
        Self::Bloom(set)
    }
}

impl From<ClassicBloom> for AnySet {
    fn from(set: ClassicBloom) -> Self {
        Self::Classic(set)
    }
}

impl From<Bitmap> for AnySet {
    fn from(set: Bitmap) -> Self {
        Self::Bitmap(set)
    }
}

impl From<ExactSet> for AnySet {
    fn from(set: ExactSet) -> Self {
        Self::Exact(set)
    }
}
