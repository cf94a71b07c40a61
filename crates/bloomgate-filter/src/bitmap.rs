//! An exact set of 64-bit integers.
//!
//! # Structure
//!
//! The upper 48 bits of an id are the number of its *chunk*, the lower 16 its *position* in the
//! chunk. An id is stored in one of three structures:
//!
//! - a **page**, for chunks with more than 4,096 ids: 8 KiB, one atomic bit per position;
//! - an **array**, for chunks with fewer: sorted 16-bit positions. The arrays of all chunks share
//!   one allocation;
//! - the **overlay**: a small hash table of the ids inserted since the arrays were built.
//!
//! Pages and arrays, indexed by a directory of the chunks, form the *base*. A base and its overlay
//! form a *state*, which is published through one pointer.
//!
//! # Why no id is lost
//!
//! - *Readers* load the pointer once and search that state. They never wait.
//! - *An insert into a page* sets the bit in place, without a lock. Every later base shares the
//!   same page, so it doesn't matter whether the state has been replaced meanwhile.
//! - *Every other insert* takes the write lock, loads the state again, and puts the id into the
//!   overlay of the published state, which can't be replaced while the lock is held. If the overlay
//!   is full, the writer first publishes a state with a larger overlay, or with a new base that
//!   includes the overlay's ids and an empty overlay, *both in one store*. No reader can see the
//!   new overlay with the old base.
//! - *A page is created* only by such a merge, and is complete before it is published. A writer
//!   that still sees the array takes the write lock and then finds the page.
//!
//! Once an insert has returned, the id is therefore in the published state and in all later ones. A
//! reader that holds an older state began before the insert returned; both answers are correct for
//! it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

use crate::striped_counter::StripedCounter;

mod base;
mod directory;
mod overlay;
mod page;
pub(crate) mod snapshot_view;
mod state;
mod statistics;
#[cfg(test)]
mod tests;
mod traits;

use base::{Base, BaseBuilder};
use state::State;

/// An exact set of integers of up to 64 bits: no false positives, and little more than one bit for
/// each dense id.
///
/// Ids are `u64`. A signed id is the `u64` with the same bits (`id as u64` for an `i64`), as in the
/// canonical bytes of a [`Key`](crate::Key): eight bytes, little-endian. Negative ids take no more
/// memory than others.
///
/// All operations take `&self`, from any number of threads. Reads never wait, nor do inserts into
/// dense ranges. Other inserts wait for one another: usually less than a microsecond, and some
/// milliseconds per million sparse ids each time the sparse ids have grown by a sixteenth and the
/// new ones are sorted in. Keys can't be removed.
///
/// *Guarantees.* A [`contains`](Bitmap::contains) that happens after an [`insert`](Bitmap::insert)
/// of the same key returned is always `true`. For an integer that was never inserted it is `false`.
///
/// *Non-integer keys.* A key that doesn't have eight bytes is not an integer, and the set can't
/// store it. After one such key was inserted, [`contains`](Bitmap::contains) is `true` for all of
/// them, so that no inserted key is ever reported absent. Integers are not affected.
///
/// # Memory
///
/// Bits per id after [`compact`](Bitmap::compact):
///
/// | ids | bits |
/// |---|---|
/// | 1, 2, 3 … | 1.05 |
/// | one in 10 | 10.0 |
/// | one in 100 | 16.1 |
/// | one in 65,536 | 80 |
/// | one in 262,144 | 272 |
/// | farther apart | 144 |
///
/// Ids in the overlay, which are not sorted in yet, take 16 to 64 *bytes* each. There are at most
/// 1,024 of them, or a sixteenth of the sparse ids if that is more. [`compact`](Bitmap::compact)
/// sorts them in; call it after filling the set. While ids are sorted in, the sparse part of the
/// set is in memory twice.
///
/// For distributions like the last three rows a [`BloomFilter`](crate::BloomFilter) is the better
/// choice: it takes a tenth of the memory, and a lookup among ids farther apart is a binary search
/// over all of them.
///
/// ```
/// use bloomgate_filter::{Bitmap, Key};
///
/// let ids = Bitmap::new();
/// for id in -500_000..500_000_i64 {
///     id.with_bytes(|key| ids.insert(key));
/// }
/// ids.compact();
///
/// assert!((-1_i64).with_bytes(|key| ids.contains(key)));
/// assert!(!ids.contains_id(500_000));
/// assert_eq!(ids.len(), 1_000_000);
/// assert!(ids.bytes() * 8 < 1_200_000);
/// ```
pub struct Bitmap {
    state: ArcSwap<State>,
    /// Held for every change except setting bits of pages. Readers never take it.
    writer: Mutex<()>,
    /// Whether a key that is not an integer was inserted.
    has_non_integer: AtomicBool,
    inserts: StripedCounter,
    /// The inserts that added a new id.
    distinct: StripedCounter,
}

impl Bitmap {
    /// An empty set. Allocates about 4 KiB, for counters.
    pub fn new() -> Self {
        Self::from_base(BaseBuilder::default().finish(), 0, 0, false)
    }

    fn from_base(base: Base, ids: u64, inserts: u64, non_integer_keys: bool) -> Self {
        Self {
            state: ArcSwap::from_pointee(State::new(base)),
            writer: Mutex::new(()),
            has_non_integer: AtomicBool::new(non_integer_keys),
            inserts: StripedCounter::starting_at(inserts),
            distinct: StripedCounter::starting_at(ids),
        }
    }

    /// Whether `id` is in the set. Never waits and does not allocate.
    #[inline]
    #[must_use]
    pub fn contains_id(&self, id: u64) -> bool {
        self.state.load().contains(id)
    }

    /// Adds `id`. `true` if it was not in the set before; if several threads add the same id
    /// concurrently, in exactly one of them.
    #[inline]
    pub fn insert_id(&self, id: u64) -> bool {
        let new = self.add(id);
        self.count(1, u64::from(new));
        new
    }

    /// Whether `key`, given as canonical bytes, is in the set; for a key that is not an integer,
    /// whether any such key was inserted. Never waits and does not allocate.
    #[inline]
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        match id_of(key) {
            Some(id) => self.contains_id(id),
            None => self.has_non_integer_keys(),
        }
    }

    /// Adds `key`, given as canonical bytes. `true` if the set changed: the integer was not in it
    /// before, or this is the first key that is not an integer.
    #[inline]
    pub fn insert(&self, key: &[u8]) -> bool {
        match id_of(key) {
            Some(id) => self.insert_id(id),
            None => {
                self.count(1, 0);
                self.add_non_integer()
            }
        }
    }

    /// [`contains`](Bitmap::contains) for each of `keys`. Replaces the contents of `answers` with
    /// one answer per key, in their order.
    pub fn contains_many<K: AsRef<[u8]>>(&self, keys: &[K], answers: &mut Vec<bool>) {
        // One state serves the whole call: it has every id inserted before the call.
        let state = self.state.load();
        answers.clear();
        answers.extend(keys.iter().map(|key| match id_of(key.as_ref()) {
            Some(id) => state.contains(id),
            None => self.has_non_integer_keys(),
        }));
    }

    /// [`insert`](Bitmap::insert) for each of `keys`.
    pub fn insert_many<K: AsRef<[u8]>>(&self, keys: &[K]) {
        let mut new = 0;
        for key in keys {
            match id_of(key.as_ref()) {
                Some(id) => new += u64::from(self.add(id)),
                None => _ = self.add_non_integer(),
            }
        }
        self.count(keys.len() as u64, new);
    }

    /// Adds every key of `other`. Both sets can be read and written during the call; keys inserted
    /// into `other` after it began may be left out.
    ///
    /// Each new id counts as one insert. Other inserts of sparse ids wait until the call ends.
    /// Costs two copies of the sparse part of this set, and a pass over `other`.
    pub fn merge(&self, other: &Bitmap) {
        // Loaded before the lock is taken: a bitmap can be merged into itself, and two bitmaps into
        // each other concurrently, without a deadlock.
        let theirs = other.state.load_full();
        if other.has_non_integer_keys() {
            self.add_non_integer();
        }
        let _lock = self.write_lock();
        let (state, new) = self.state.load().union(&theirs);
        self.state.store(Arc::new(state));
        self.count(new, new);
    }

    /// Sorts all ids of the overlay into the base, which minimises memory and lookup time.
    ///
    /// Call it once after filling the set. Other inserts of sparse ids wait until it ends: some
    /// milliseconds per million sparse ids.
    pub fn compact(&self) {
        let _lock = self.write_lock();
        self.publish_compacted();
    }

    fn count(&self, inserts: u64, new: u64) {
        self.inserts.add(inserts);
        if new > 0 {
            self.distinct.add(new);
        }
    }

    #[inline]
    fn add(&self, id: u64) -> bool {
        let added = self.state.load().insert_in_place(id);
        added.unwrap_or_else(|| self.add_under_lock(id))
    }

    /// Adds `id` under the write lock; whether it was new.
    #[cold]
    fn add_under_lock(&self, id: u64) -> bool {
        let _lock = self.write_lock();
        loop {
            // Loaded under the lock: this is the published state, and no other writer can replace
            // it.
            let state = self.state.load();
            if let Some(new) = state.insert_in_place(id) {
                return new;
            }
            if state.insert_into_overlay(id) {
                return true;
            }
            // The next state has a free slot, or the chunk of `id` is a page in it.
            self.state.store(Arc::new(state.with_free_slot()));
        }
    }

    fn add_non_integer(&self) -> bool {
        !self.has_non_integer.swap(true, Ordering::AcqRel)
    }

    /// Publishes a state with an empty overlay, and returns it. The caller must hold the write
    /// lock.
    fn publish_compacted(&self) -> Arc<State> {
        let state = Arc::new(self.state.load().compacted());
        self.state.store(Arc::clone(&state));
        state
    }

    /// Takes the write lock.
    ///
    /// A poisoned lock is safe to use: every change is published by one write to a word, a slot or
    /// the pointer, so a writer that panicked leaves no partial change.
    fn write_lock(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id encoded by `key`, or `None` if it doesn't have eight bytes.
#[inline]
fn id_of(key: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(key.try_into().ok()?))
}
