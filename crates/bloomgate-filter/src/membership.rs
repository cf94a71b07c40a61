//! What every filter that answers for a set of keys can do.

use std::fmt;

/// A set of keys, possibly an approximate one, that never forgets and never denies a member.
///
/// Object-safe, so that `Arc<dyn Membership>` can hold whichever family was configured. Keys are
/// the canonical bytes of a [`Key`](crate::Key).
///
/// ```
/// use std::sync::Arc;
/// use bloomgate_filter::{BloomFilter, Hash, Key, KeyedHasher, Membership, Plan, Rate, Secret};
///
/// let hasher = KeyedHasher::new(Hash::SipHash13, &Secret::generate()?, &[0; 16]);
/// let plan = Plan::new(1_000, Rate::new(0.01)?)?;
/// let set: Arc<dyn Membership> = Arc::new(BloomFilter::new(plan, hasher)?);
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

    /// The figures of the set, in constant time.
    fn stats(&self) -> Stats;

    /// The name of the family, such as `"bloom"`.
    fn family(&self) -> &'static str;
}

/// The figures of a filter at one moment.
///
/// All are finite. While other threads insert, the numbers may be some inserts apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// Calls of `insert` so far, repeated keys included.
    pub items: u64,
    /// Distinct items that the filter was planned for.
    pub capacity: u64,
    /// Bytes of filter memory, without counters and fixed fields.
    pub bytes: u64,
    /// The share of bits that are set, from 0 to 1.
    pub fill_ratio: f64,
    /// The false-positive rate to expect with `capacity` distinct items, from 0 to 1.
    pub expected_false_positive_rate: f64,
    /// The false-positive rate to expect now, from 0 (empty) to 1 (every bit set).
    pub present_false_positive_rate: f64,
}
