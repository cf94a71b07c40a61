//! An exact set of keys of any kind.

use std::fmt;
use std::hash::RandomState;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arc_swap::ArcSwap;

use crate::membership::{Family, Membership, Stats};
use crate::table::Table;

#[cfg(test)]
mod tests;

/// The capacity after the first insert into an empty set.
const INITIAL_CAPACITY: usize = 8;

/// The largest initial capacity of [`ExactSet::with_capacity`].
const MAX_INITIAL_CAPACITY: usize = 1 << 16;

/// Bytes of the two counters that an `Arc` stores before its value.
const ARC_COUNTS: usize = 2 * size_of::<usize>();

/// An exact set of keys of any kind, for a few thousand of them.
///
/// It stores the keys themselves: it has no false positives, and takes about 100 bytes plus the
/// length of the key for each. Reads take no lock and don't wait for writers; writers wait for one
/// another. Keys can't be removed.
///
/// *Guarantees.* A [`contains`](ExactSet::contains) that happens after an
/// [`insert`](ExactSet::insert) of the same key returned is always `true`. For a key that was never
/// inserted it is `false`.
///
/// ```
/// use bloomgate_filter::{ExactSet, Key};
///
/// let set = ExactSet::new();
/// assert!("de".to_owned().with_bytes(|key| set.insert(key)));
/// assert!(set.contains(b"de"));
/// assert!(!set.contains(b"fr"));
/// assert_eq!(set.stats().distinct, Some(1));
/// ```
pub struct ExactSet {
    /// Inserts modify the table in place until it is full; then a larger one replaces it.
    table: ArcSwap<Table<Arc<[u8]>>>,
    /// Held while a key is added. Readers never take it.
    writer: Mutex<()>,
    inserts: AtomicU64,
    /// Heap bytes of the keys, without their slots. Changed under `writer`.
    key_bytes: AtomicU64,
}

/// Heap bytes of a key of `len` bytes.
fn key_bytes(len: usize) -> usize {
    (ARC_COUNTS + len).next_multiple_of(size_of::<usize>())
}

impl ExactSet {
    /// An empty set. Allocates less than 100 bytes.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// An empty set with capacity for `items` keys, at most 65,536, so that an unchecked number
    /// can't exhaust memory. The set grows beyond its initial capacity as needed.
    pub fn with_capacity(items: usize) -> Self {
        let table = Table::new(items.min(MAX_INITIAL_CAPACITY), RandomState::new());
        Self {
            table: ArcSwap::from_pointee(table),
            writer: Mutex::new(()),
            inserts: AtomicU64::new(0),
            key_bytes: AtomicU64::new(0),
        }
    }

    /// The set stored as these `count` keys, with a count of `inserts` inserts or of the number of
    /// keys, whichever is more. Allocates for `count` keys at once.
    pub(crate) fn from_keys<'a>(
        keys: impl Iterator<Item = &'a [u8]>,
        count: usize,
        inserts: u64,
    ) -> Self {
        let set = Self {
            table: ArcSwap::from_pointee(Table::new(count, RandomState::new())),
            inserts: AtomicU64::new(inserts.max(count as u64)),
            ..Self::new()
        };
        keys.for_each(|key| _ = set.add(Arc::from(key)));
        set
    }

    /// Whether `key`, given as canonical bytes, is in the set.
    ///
    /// Never waits and does not allocate.
    #[inline]
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.table.load().contains(key)
    }

    /// Adds `key`, given as canonical bytes. `true` if it was not in the set before; if several
    /// threads add the same key concurrently, in exactly one of them.
    ///
    /// Waits for other writers. Copies the key. Each time the number of keys has doubled, the slots
    /// are copied, not the keys.
    pub fn insert(&self, key: &[u8]) -> bool {
        // A key that is present stays present, so this check needs no lock.
        let new = !self.contains(key) && self.add(Arc::from(key));
        self.inserts.fetch_add(1, Ordering::Relaxed);
        new
    }

    /// Adds every key of `other`. Both sets can be read and written during the call; keys inserted
    /// into `other` after it began may be left out.
    ///
    /// Each new key counts as one insert. The sets share the bytes of the keys.
    pub fn merge(&self, other: &ExactSet) {
        let table = other.table.load_full();
        for key in table.items() {
            if !self.contains(key) && self.add(Arc::clone(key)) {
                self.inserts.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The number of keys.
    pub fn len(&self) -> u64 {
        self.table.load().len() as u64
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of heap memory, as requested from the allocator; constant time.
    ///
    /// Keys that a [`merge`](ExactSet::merge) shares between two sets count in both.
    pub fn bytes(&self) -> u64 {
        let table = self.table.load();
        let fixed = ARC_COUNTS + size_of_val(&**table);
        self.key_bytes.load(Ordering::Relaxed) + table.bytes() + fixed as u64
    }

    /// Bytes that a set of `keys` keys of `key_len` bytes each takes; constant time.
    pub fn planned_bytes(keys: u64, key_len: usize) -> u128 {
        let capacity = match u128::from(keys) {
            0 => 0,
            keys => keys.next_power_of_two().max(INITIAL_CAPACITY as u128),
        };
        let slot = size_of::<OnceLock<Arc<[u8]>>>() as u128;
        u128::from(keys) * key_bytes(key_len) as u128 + 2 * capacity * slot
    }

    /// The statistics of the set; constant time.
    ///
    /// `fill_ratio` is the share of used slots. It is at most one half, which keeps lookups short.
    pub fn stats(&self) -> Stats {
        let items = self.inserts.load(Ordering::Relaxed);
        let table = self.table.load();
        let distinct = table.len();
        Stats {
            items,
            distinct: Some(distinct as u64),
            capacity: None,
            bytes: self.bytes(),
            hashes: 0,
            fill_ratio: distinct as f64 / table.slots().max(1) as f64,
            expected_false_positive_rate: 0.0,
            current_false_positive_rate: 0.0,
        }
    }

    /// Adds `key` under the write lock; whether it was new.
    fn add(&self, key: Arc<[u8]>) -> bool {
        let _lock = self.write_lock();
        // Loaded under the lock: this is the published table, and no other writer can replace it.
        let table = self.table.load();
        if table.contains(&*key) {
            return false;
        }
        let bytes = key_bytes(key.len());
        if let Err(key) = table.insert(key) {
            let larger = table.resized((2 * table.capacity()).max(INITIAL_CAPACITY));
            // Can't fail: the capacity is larger than the number of keys.
            let _ = larger.insert(key);
            self.table.store(Arc::new(larger));
        }
        self.key_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        true
    }

    /// Takes the write lock.
    ///
    /// A poisoned lock is safe to use: every change is published by one write to a slot or the
    /// pointer, so a writer that panicked leaves no partial change.
    fn write_lock(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All keys that were in the set when the call began, sorted by their bytes.
    pub(crate) fn sorted_keys(&self) -> Vec<Arc<[u8]>> {
        let mut keys: Vec<_> = self.table.load().items().cloned().collect();
        keys.sort_unstable();
        keys
    }
}

impl Default for ExactSet {
    fn default() -> Self {
        Self::new()
    }
}

impl Membership for ExactSet {
    fn contains(&self, key: &[u8]) -> bool {
        ExactSet::contains(self, key)
    }

    fn insert(&self, key: &[u8]) -> bool {
        ExactSet::insert(self, key)
    }

    fn stats(&self) -> Stats {
        ExactSet::stats(self)
    }

    fn family(&self) -> Family {
        Family::Exact
    }
}

impl fmt::Debug for ExactSet {
    /// Prints the statistics, no keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExactSet").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
