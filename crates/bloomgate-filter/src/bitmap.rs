//! An exact set of 64-bit integers.
//!
//! # Structure
//!
//! The upper 48 bits of an id number its *chunk*, the lower 16 are its *position* there. Ids live in
//! one of three places:
//!
//! - a **page**, for chunks with more than 4,096 ids: 8 KiB, one bit a position, atomic;
//! - an **array**, for chunks with fewer: sorted positions of 16 bits. The arrays of all chunks
//!   share one allocation;
//! - the **overlay**: a small hash table of ids that came since the arrays were made.
//!
//! Pages and arrays, found through a directory of the chunks, make the *base*. A base and its
//! overlay are one *state*, and the state is published by one pointer.
//!
//! # Why no id is lost
//!
//! - *Readers* load the pointer once and look into that state. They wait for nobody.
//! - *An insert into a page* sets the bit in place, without a lock. Every later base has the very
//!   same page, so it doesn't matter whether the state in hand is still the published one.
//! - *Every other insert* waits for its turn (a mutex), loads the state again, and puts the id into
//!   the overlay of the published state, which nobody can replace during the turn. If the overlay
//!   is full, the writer publishes a state with room first: a larger overlay, or a new base that
//!   has taken the overlay in and an empty overlay, *both with one store*. No reader can see the
//!   new overlay with the old base.
//! - *A page comes into being* only in such a merge, complete before it is published. Whoever still
//!   sees the array waits for a turn, and then finds the page.
//!
//! So once an insert has returned, the id is in the published state and in all later ones. A reader
//! that holds an older state began before the insert returned, and may answer either way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

use crate::membership::Stats;
use crate::striped_counter::StripedCounter;

mod base;
mod directory;
mod overlay;
mod page;
pub(crate) mod snapshot_view;
mod state;
#[cfg(test)]
mod tests;
mod traits;

use base::{Base, BaseBuilder, MAX_IN_ARRAY};
use page::PAGE_BITS;
use state::State;

/// An exact set of integers of up to 64 bits: no absent id passes, and dense ids take little more
/// than a bit each.
///
/// Ids are `u64`. A signed id is the `u64` of the same bits (`id as u64` of an `i64`), which is also
/// what the canonical bytes of a [`Key`](crate::Key) say: eight of them, little-endian. Negative ids
/// are as cheap as others.
///
/// All operations take `&self`, from any number of threads. Reads never wait. Inserts into dense
/// stretches don't either; the others wait for one another, mostly for less than a microsecond,
/// but for some milliseconds a million sparse ids whenever those have grown by a sixteenth and new
/// ones are sorted in. There is no removal.
///
/// *Promise.* A [`contains`](Bitmap::contains) that happens after an [`insert`](Bitmap::insert) of
/// the same key returned is `true`, always; of an integer that nobody inserted it is `false`.
///
/// *Foreign keys.* Keys that are not eight bytes are no integers, and the set can't hold them.
/// Rather than ever deny one, it says `true` to all of them once one was inserted. Integers are
/// not affected.
///
/// # Memory
///
/// Bits an id, once compact:
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
/// Ids that are still to be sorted in take 16 to 64 *bytes* each. They are at most 1,024, or a
/// sixteenth of the sparse ids; [`compact`](Bitmap::compact) sorts them in at once, and a warm-up
/// should end with it. While new ids are sorted in, the sparse part of the set is in memory twice.
///
/// Ids of the last three rows are better kept elsewhere: a look-up of the last is a binary search
/// through all of them, and a [`BloomFilter`](crate::BloomFilter) takes a tenth of the memory.
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
    /// Held by whoever changes anything but bits of pages. Readers know nothing of it.
    writer: Mutex<()>,
    /// Whether a key was inserted that is no integer.
    has_non_integer: AtomicBool,
    inserts: StripedCounter,
    /// Those of them that were new ids.
    distinct: StripedCounter,
}

impl Bitmap {
    /// An empty set. Allocates next to nothing.
    pub fn new() -> Self {
        Self::of(BaseBuilder::default().finish(), 0, 0, false)
    }

    fn of(base: Base, ids: u64, inserts: u64, non_integer_keys: bool) -> Self {
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

    /// Adds `id`. `true` if it was not in the set before: of several threads that add the same id
    /// at once, exactly one is told so.
    #[inline]
    pub fn insert_id(&self, id: u64) -> bool {
        let new = self.add(id);
        self.count(1, u64::from(new));
        new
    }

    /// Whether `key`, given as canonical bytes, is in the set; for a key that is no integer,
    /// whether any such key was inserted. Never waits and does not allocate.
    #[inline]
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        match id_of(key) {
            Some(id) => self.contains_id(id),
            None => self.has_non_integer_keys(),
        }
    }

    /// Adds `key`, given as canonical bytes. `true` if that changed anything: an integer was not in
    /// the set before, or this is the first key that is no integer.
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

    /// [`contains`](Bitmap::contains) for each of `keys`: `answers` is emptied and then holds one
    /// answer a key, in their order.
    pub fn contains_many<K: AsRef<[u8]>>(&self, keys: &[K], answers: &mut Vec<bool>) {
        // One state for all: an id that came before this call is in it.
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

    /// Adds every key of `other`. Both sets can be read and written meanwhile, but keys that enter
    /// `other` after the call began may be left out.
    ///
    /// Each id that is new counts as one insert. Other inserts of sparse ids wait; the time is that
    /// of copying the sparse part of this set twice, and of reading the whole of `other`.
    pub fn merge(&self, other: &Bitmap) {
        // Loaded before the turn: a bitmap can be merged into itself, and two into each other.
        let theirs = other.state.load_full();
        if other.has_non_integer_keys() {
            self.add_non_integer();
        }
        let _lock = self.write_lock();
        let (state, new) = self.state.load().union(&theirs);
        self.state.store(Arc::new(state));
        self.count(new, new);
    }

    /// Sorts in all ids that wait for it, so that memory is smallest and look-ups are quickest.
    ///
    /// Worth calling once after filling the set. Other inserts of sparse ids wait meanwhile, some
    /// milliseconds for a million sparse ids.
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

    /// The number of ids.
    pub fn len(&self) -> u64 {
        self.distinct.total()
    }

    /// Whether the set is empty: there is neither an id nor was a key inserted that is no integer.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && !self.has_non_integer_keys()
    }

    /// Bytes of memory on the heap, as asked of the allocator, without those of the counters, which
    /// are always 4 KiB; constant time.
    pub fn bytes(&self) -> u64 {
        self.state.load().bytes()
    }

    /// Bytes that `ids` dense ids will take once compact, to within a percent: for planning.
    ///
    /// Constant time.
    pub fn planned_bytes(ids: u64) -> u128 {
        /// The directory's share of a chunk.
        const CHUNK: u128 = 40;
        /// What an empty set takes.
        const EMPTY: u128 = 128;
        const PAGE: u128 = PAGE_BITS as u128 / 8;
        let (whole, rest) = (u128::from(ids >> 16), u128::from(ids & 0xffff));
        let rest_bytes = if rest > MAX_IN_ARRAY as u128 { PAGE } else { 2 * rest };
        let chunks = whole + u128::from(rest > 0);
        EMPTY + whole * PAGE + rest_bytes + chunks * CHUNK
    }

    /// The figures of the set; constant time.
    ///
    /// `distinct` counts ids. The rates are 0 because they are those of integers. `fill_ratio` is
    /// the share of places that are taken, where a page has 65,536 places and an array as many as it
    /// has ids.
    pub fn stats(&self) -> Stats {
        let (items, distinct) = (self.inserts.total(), self.distinct.total());
        let state = self.state.load();
        // The counters can be ahead of the state by some inserts.
        let fill_ratio = (distinct as f64 / state.slots().max(1) as f64).min(1.0);
        Stats {
            items,
            distinct: Some(distinct),
            capacity: None,
            bytes: state.bytes(),
            hashes: 0,
            fill_ratio,
            expected_false_positive_rate: 0.0,
            current_false_positive_rate: 0.0,
        }
    }

    /// Whether a key was inserted that is no integer, so that all such keys are held present.
    pub fn has_non_integer_keys(&self) -> bool {
        self.has_non_integer.load(Ordering::Acquire)
    }

    #[inline]
    fn add(&self, id: u64) -> bool {
        let added = self.state.load().insert_in_place(id);
        added.unwrap_or_else(|| self.add_under_lock(id))
    }

    /// Adds `id` when the writer's turn has come; whether it was new.
    #[cold]
    fn add_under_lock(&self, id: u64) -> bool {
        let _lock = self.write_lock();
        loop {
            // Loaded within the turn: this is the newest state, and nobody can replace it.
            let state = self.state.load();
            if let Some(new) = state.insert_in_place(id) {
                return new;
            }
            if state.insert_into_overlay(id) {
                return true;
            }
            // Now there is room for it, or its chunk has become a page.
            self.state.store(Arc::new(state.with_free_slot()));
        }
    }

    fn add_non_integer(&self) -> bool {
        !self.has_non_integer.swap(true, Ordering::AcqRel)
    }

    /// Publishes a state without overlay and hands it back. Only for the writer whose turn it is.
    fn publish_compacted(&self) -> Arc<State> {
        let state = Arc::new(self.state.load().compacted());
        self.state.store(Arc::clone(&state));
        state
    }

    /// Waits until no other writer is at work.
    ///
    /// A writer that panicked leaves nothing half done: whatever readers see was published by one
    /// write to a word, a slot or the pointer.
    fn write_lock(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id that `key` is, or `None` if it isn't eight bytes.
#[inline]
fn id_of(key: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(key.try_into().ok()?))
}
