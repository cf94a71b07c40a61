//! A hash table of fixed size that items only enter, read without locks.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(test)]
mod tests;

/// An open-addressing table with linear probing. At most half of its slots are ever taken, so that
/// every probe soon meets an empty one.
///
/// Readers need nothing but `&self`. Writers must take turns (their owner holds a lock), or two of
/// them may enter the same item twice. Growing makes a new table; whoever owns the table publishes
/// it in place of the old one, which stays readable as long as somebody reads it.
///
/// *Why a reader can't miss an item.* A slot is written once and never emptied. An item goes into
/// the first empty slot of its probe; the slots before it were taken by writers whose turn came
/// earlier. Whoever runs after the insert returned therefore sees all of them taken, and the item.
pub(crate) struct Table<T> {
    slots: Box<[OnceLock<T>]>,
    taken: AtomicUsize,
    /// `RandomState` is SipHash under random keys: whoever chooses the items can't make them
    /// collide. Its values differ from process to process, which is right for slots alone: they
    /// are never stored, sent or shown.
    hasher: RandomState,
}

impl<T: Clone + Eq + Hash> Table<T> {
    /// An empty table with capacity for `capacity` items, hashing with `hasher`.
    pub(crate) fn new(capacity: usize, hasher: RandomState) -> Self {
        let slots = (0..capacity.saturating_mul(2)).map(|_| OnceLock::new()).collect();
        Self { slots, taken: AtomicUsize::new(0), hasher }
    }

    /// A table with capacity for `capacity` items, or for as many as are here if that is more, and the
    /// items of this one.
    pub(crate) fn resized(&self, capacity: usize) -> Self {
        let table = Self::new(capacity.max(self.len()), self.hasher.clone());
        for item in self.items() {
            // Never refused: there is capacity for all of them.
            let _ = table.insert(item.clone());
        }
        table
    }

    /// Whether an item equal to `key` is in.
    #[inline]
    pub(crate) fn contains<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        if self.slots.is_empty() {
            return false;
        }
        self.probe(key).map_while(OnceLock::get).any(|item| item.borrow() == key)
    }

    /// Adds `item`, of which the caller knows that it isn't in. Hands it back if the table is full.
    pub(crate) fn insert(&self, item: T) -> Result<(), T> {
        if self.len() >= self.capacity() {
            return Err(item);
        }
        let slots = self.probe(&item);
        let mut item = item;
        for slot in slots {
            match slot.set(item) {
                Ok(()) => {
                    self.taken.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                Err(refused) => item = refused,
            }
        }
        Err(item)
    }

    /// The slots in the order in which `key` looks for its place. The table must have slots.
    #[inline]
    fn probe<'t, Q>(&'t self, key: &Q) -> impl Iterator<Item = &'t OnceLock<T>> + use<'t, T, Q>
    where
        Q: Hash + ?Sized,
    {
        // The upper half of the product maps a uniform hash onto the slots, however many.
        let hash = u128::from(self.hasher.hash_one(key));
        let start = ((hash * self.slots.len() as u128) >> 64) as usize;
        let (before, after) = self.slots.split_at(start);
        after.iter().chain(before)
    }

    /// The items, in no order that means anything.
    pub(crate) fn items(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(OnceLock::get)
    }

    /// The number of items.
    pub(crate) fn len(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// How many items fit.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.len() / 2
    }

    /// The number of slots, twice the capacity.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Bytes on the heap, without what the items themselves point to.
    pub(crate) fn bytes(&self) -> u64 {
        size_of_val(&*self.slots) as u64
    }
}
