//! The common interface of all families of sets.

use std::fmt;

/// A set of keys without removal and without false negatives, possibly with false positives.
///
/// Object-safe: `Arc<dyn Membership>` can hold a set of any family. Keys are the canonical bytes of
/// a [`Key`](crate::Key).
///
/// ```
/// use std::sync::Arc;
/// use bloomgate_filter::{
///     BloomFilter, BloomParams, FalsePositiveRate, HashAlgorithm, Key, KeyedHasher, Membership,
///     Secret,
/// };
///
/// let secret = Secret::new(b"replace with 32 random bytes")?;
/// let hasher = KeyedHasher::new(HashAlgorithm::SipHash13, &secret, &[0; 16]);
/// let params = BloomParams::new(1_000, FalsePositiveRate::new(0.01)?)?;
/// let set: Arc<dyn Membership> = Arc::new(BloomFilter::new(params, hasher)?);
/// 42_i64.with_bytes(|key| set.insert(key));
/// assert!(42_i64.with_bytes(|key| set.contains(key)));
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
pub trait Membership: fmt::Debug + Send + Sync + 'static {
    /// Whether `key` may be in the set. `false` is certain: no insert of `key` happened before the
    /// call.
    #[must_use]
    fn contains(&self, key: &[u8]) -> bool;

    /// Adds `key`. `true` if the set changed.
    ///
    /// For Bloom filters the result is advisory: it can be `true` in two threads that add the same
    /// key concurrently, and `false` for a new key.
    fn insert(&self, key: &[u8]) -> bool;

    /// [`contains`](Membership::contains) for each of `keys`. Replaces the contents of `answers`
    /// with one answer per key, in their order.
    ///
    /// Faster than single calls from a handful of keys on: a filter that is larger than the
    /// processor's caches prefetches memory for later keys while it tests earlier ones.
    fn contains_many(&self, keys: &[&[u8]], answers: &mut Vec<bool>) {
        answers.clear();
        answers.extend(keys.iter().map(|key| self.contains(key)));
    }

    /// [`insert`](Membership::insert) for each of `keys`, with the same advantage as
    /// [`contains_many`](Membership::contains_many).
    fn insert_many(&self, keys: &[&[u8]]) {
        for key in keys {
            self.insert(key);
        }
    }

    /// The statistics of the set. The cost is bounded, whatever the size of the set.
    fn stats(&self) -> Stats;

    /// The family of the set.
    fn family(&self) -> Family;
}

/// The families of sets in this crate.
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
    /// [`BloomFilter`](crate::BloomFilter): any keys, one cache line per lookup, approximate.
    Bloom,
    /// [`Bitmap`](crate::Bitmap): integers, exact.
    Bitmap,
    /// [`ExactSet`](crate::ExactSet): a few thousand keys of any kind, exact.
    Exact,
    /// [`ClassicBloom`](crate::ClassicBloom): the textbook filter, for comparison.
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

    /// The number of the family in stored data: bloom 1, bitmap 2, exact 3, classic 4.
    pub const fn id(self) -> u8 {
        match self {
            Self::Bloom => 1,
            Self::Bitmap => 2,
            Self::Exact => 3,
            Self::Classic => 4,
        }
    }

    /// The family with this [`id`](Family::id), or `None` for an unknown number.
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

/// Statistics of a set.
///
/// All numbers are finite. During concurrent inserts, the fields may differ by some inserts.
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
#[non_exhaustive]
pub struct Stats {
    /// Calls of `insert` so far, repeated keys included.
    pub items: u64,
    /// Distinct keys: counted by the exact families, estimated from the set bits by the others.
    /// `None` if every bit is set, which makes an estimate impossible.
    pub distinct: Option<u64>,
    /// Distinct keys that the filter was sized for; `None` for the exact families, which grow.
    pub capacity: Option<u64>,
    /// Bytes of memory of the set, without counters and fixed fields.
    pub bytes: u64,
    /// Bits that a key sets; 0 for the exact families, which do not hash keys into bits.
    pub hashes: u32,
    /// The share of bits that are set, or of slots that are used, from 0 to 1.
    pub fill_ratio: f64,
    /// The expected false-positive rate with `capacity` distinct keys, from 0 to 1.
    pub expected_false_positive_rate: f64,
    /// The expected false-positive rate now, from 0 (empty, or exact) to 1 (every bit set).
    pub current_false_positive_rate: f64,
}
