//! What every filter that answers for a set of keys can do.

use std::fmt;

/// A set of keys, possibly an approximate one, that never forgets and never denies a member.
///
/// Object-safe, so that `Arc<dyn Membership>` can hold whichever family was configured. Keys are
/// the canonical bytes of a [`Key`](crate::Key).
///
/// ```
/// use std::sync::Arc;
/// use bloomgate_filter::{BloomFilter, HashAlgorithm, Key, KeyedHasher, Membership, BloomParams, FalsePositiveRate, Secret};
///
/// let hasher = KeyedHasher::new(HashAlgorithm::SipHash13, &Secret::generate()?, &[0; 16]);
/// let params = BloomParams::new(1_000, FalsePositiveRate::new(0.01)?)?;
/// let set: Arc<dyn Membership> = Arc::new(BloomFilter::new(params, hasher)?);
/// 42_i64.with_bytes(|key| set.insert(key));
/// assert!(42_i64.with_bytes(|key| set.contains(key)));
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
pub trait Membership: fmt::Debug + Send + Sync + 'static {
    /// Whether `key` may be in the set. `false` is certain: no insert of `key` happened before.
    #[must_use]
    fn contains(&self, key: &[u8]) -> bool;

    /// Adds `key`. Whether something changed is returned as advice only: of two threads that add
    /// the same key at the same time both may be told `true`, and a new key may be told `false`.
    fn insert(&self, key: &[u8]) -> bool;

    /// [`contains`](Membership::contains) for each of `keys`: `answers` is emptied and then holds
    /// one answer a key, in their order.
    ///
    /// Worth using from a handful of keys: a filter that is larger than the processor's caches
    /// fetches memory for later keys while it tests earlier ones.
    fn contains_many(&self, keys: &[&[u8]], answers: &mut Vec<bool>) {
        answers.clear();
        answers.extend(keys.iter().map(|key| self.contains(key)));
    }

    /// [`insert`](Membership::insert) for each of `keys`, with the same gain as
    /// [`contains_many`](Membership::contains_many).
    fn insert_many(&self, keys: &[&[u8]]) {
        for key in keys {
            self.insert(key);
        }
    }

    /// The figures of the set. Its cost is bounded and does not grow with the set.
    fn stats(&self) -> Stats;

    /// Which kind of set this is.
    fn family(&self) -> Family;
}

/// The kinds of sets in this crate.
///
/// ```
/// use bloomgate_filter::Family;
///
/// assert_eq!(Family::Bitmap.name(), "bitmap");
/// assert_eq!(Family::from_id(Family::Bitmap.id()), Some(Family::Bitmap));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// [`BloomFilter`](crate::BloomFilter): any keys, one cache line a lookup, approximate.
    Bloom,
    /// [`Bitmap`](crate::Bitmap): integers, exact.
    Bitmap,
    /// [`ExactSet`](crate::ExactSet): a few thousand keys of any kind, exact.
    Exact,
    /// [`ClassicBloom`](crate::ClassicBloom): the textbook filter, for reference.
    Classic,
}

impl Family {
    /// The name in status documents and on command lines: `bloom`, `bitmap`, `exact`, `classic`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bloom => "bloom",
            Self::Bitmap => "bitmap",
            Self::Exact => "exact",
            Self::Classic => "classic",
        }
    }

    /// The number that stands for the family in stored data: bloom 1, bitmap 2, exact 3, classic 4.
    pub const fn id(self) -> u8 {
        match self {
            Self::Bloom => 1,
            Self::Bitmap => 2,
            Self::Exact => 3,
            Self::Classic => 4,
        }
    }

    /// The family that [`id`](Family::id) gave the number of, or `None` for an unknown number.
    pub const fn from_id(id: u8) -> Option<Self> {
        match id {
            1 => Some(Self::Bloom),
            2 => Some(Self::Bitmap),
            3 => Some(Self::Exact),
            4 => Some(Self::Classic),
            _ => None,
        }
    }
}

/// The figures of a set at one moment.
///
/// All are finite. While other threads insert, the numbers may be some inserts apart.
///
/// ```
/// use bloomgate_filter::Bitmap;
///
/// let ids = Bitmap::new();
/// for id in [7, 8, 7] {
///     ids.insert_id(id);
/// }
/// let stats = ids.stats();
/// assert_eq!((stats.items, stats.distinct), (3, Some(2)));
/// assert_eq!(stats.current_false_positive_rate, 0.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// Calls of `insert` so far, repeated keys included.
    pub items: u64,
    /// Distinct keys: counted by the exact families, estimated from the set bits by the others.
    /// `None` if every bit is set: then nobody can tell.
    pub distinct: Option<u64>,
    /// Distinct items that the filter was planned for; `None` for the exact families, which grow.
    pub capacity: Option<u64>,
    /// Bytes of memory that hold the set, without counters and fixed fields.
    pub bytes: u64,
    /// Bits that a key sets; 0 for the exact families, which do not hash keys into bits.
    pub hashes: u32,
    /// The share of bits, or of places for keys, that are taken, from 0 to 1.
    pub fill_ratio: f64,
    /// The false-positive rate to expect with `capacity` distinct items, from 0 to 1.
    pub expected_false_positive_rate: f64,
    /// The false-positive rate to expect now, from 0 (empty, or exact) to 1 (every bit set).
    pub current_false_positive_rate: f64,
}
