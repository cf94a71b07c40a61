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

/// The capacity that the first key makes.
const INITIAL_CAPACITY: usize = 8;

/// The most capacity that [`ExactSet::with_capacity`] makes in advance.
const MAX_INITIAL_CAPACITY: usize = 1 << 16;

/// Bytes that an `Arc` puts before what it holds: its two counters.
const ARC_COUNTS: usize = 2 * size_of::<usize>();

/// An exact set of keys of any kind, for a few thousand of them.
///
/// It holds the keys themselves: nothing absent ever passes, at about 100 bytes and the length of
/// the key for each. Reads take no lock and don't wait for writers; writers wait for one another.
/// There is no removal.
///
/// *Promise.* A [`contains`](ExactSet::contains) that happens after an
/// [`insert`](ExactSet::insert) of the same key returned is `true`, always; of a key that nobody
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
    /// Replaced as a whole when it has to grow; between that, keys enter it in place.
    table: ArcSwap<Table<Arc<[u8]>>>,
    /// Held by whoever adds a key. Readers know nothing of it.
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
    /// An empty set. Allocates next to nothing.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// An empty set with capacity for `items` keys, or for 65,536 if `items` is more: a number that
    /// came from elsewhere can't exhaust memory. The set grows as it needs to in either case.
    pub fn with_capacity(items: usize) -> Self {
        let table = Table::new(items.min(MAX_INITIAL_CAPACITY), RandomState::new());
        Self {
            table: ArcSwap::from_pointee(table),
            writer: Mutex::new(()),
            inserts: AtomicU64::new(0),
            key_bytes: AtomicU64::new(0),
        }
    }

    /// The set that was stored as these `keys` after `inserts` inserts, or as many as there are keys,
    /// if that is more. There are `count` keys, for which capacity is made at once.
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

    /// Adds `key`, given as canonical bytes. `true` if it was not in the set before: of several
    /// threads that add the same key at once, exactly one is told so.
    ///
    /// Waits for other writers. Copies the key; each time the set has doubled, its places for keys
    /// are copied too, though not the keys.
    pub fn insert(&self, key: &[u8]) -> bool {
        // A key that is in stays in, so that needs no turn.
        let new = !self.contains(key) && self.add(Arc::from(key));
        self.inserts.fetch_add(1, Ordering::Relaxed);
        new
    }

    /// Adds every key of `other`. Both sets can be read and written meanwhile, but keys that enter
    /// `other` after the call began may be left out.
    ///
    /// Each key that is new counts as one insert. The bytes of the keys are shared between the sets.
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

    /// Bytes of memory on the heap, as asked of the allocator; constant time.
    ///
    /// Keys that a [`merge`](ExactSet::merge) shares between two sets count in both.
    pub fn bytes(&self) -> u64 {
        let table = self.table.load();
        let fixed = ARC_COUNTS + size_of_val(&**table);
        self.key_bytes.load(Ordering::Relaxed) + table.bytes() + fixed as u64
    }

    /// Bytes that `keys` keys of `key_len` bytes each will take: for planning.
    ///
    /// Constant time.
    pub fn planned_bytes(keys: u64, key_len: usize) -> u128 {
        let capacity = match u128::from(keys) {
            0 => 0,
            keys => keys.next_power_of_two().max(INITIAL_CAPACITY as u128),
        };
        let slot = size_of::<OnceLock<Arc<[u8]>>>() as u128;
        u128::from(keys) * key_bytes(key_len) as u128 + 2 * capacity * slot
    }

    /// The figures of the set; constant time.
    ///
    /// `fill_ratio` is the share of places for keys that are taken, at most one half: growing keeps
    /// the other half free, so that look-ups are short.
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

    /// Adds `key` when the writer's turn has come; whether it was new.
    fn add(&self, key: Arc<[u8]>) -> bool {
        let _lock = self.write_lock();
        // Loaded within the turn: this is the newest table, and nobody can replace it.
        let table = self.table.load();
        if table.contains(&*key) {
            return false;
        }
        let bytes = key_bytes(key.len());
        if let Err(key) = table.insert(key) {
            let larger = table.resized((2 * table.capacity()).max(INITIAL_CAPACITY));
            // Never refused: the capacity is larger than the number of keys.
            let _ = larger.insert(key);
            self.table.store(Arc::new(larger));
        }
        self.key_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        true
    }

    /// Waits until no other writer is at work.
    ///
    /// A writer that panicked leaves nothing half done: whatever readers see was published by one
    /// write to a slot or to the pointer.
    fn write_lock(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All keys that were in when the call began, sorted by their bytes.
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
    /// The figures; the keys stay out of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExactSet").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
