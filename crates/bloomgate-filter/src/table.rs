//! An insert-only hash table of fixed size with lock-free reads.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(test)]
mod tests;

/// An open-addressing table with linear probing. At most half of its slots are used, so probes are
/// short.
///
/// Readers need only `&self`. Writers must hold the owner's write lock, or two of them may insert
/// the same item twice. Growing makes a new table that the owner publishes in place of the old one;
/// the old one stays valid for its remaining readers.
///
/// *Why a reader can't miss an item.* A slot is written once and never emptied. An item is written
/// to the first empty slot of its probe sequence; earlier writers filled the slots before it. A
/// reader that runs after the insert returned therefore sees all of those slots filled, and the
/// item.
pub(crate) struct Table<T> {
    slots: Box<[OnceLock<T>]>,
    used: AtomicUsize,
    /// `RandomState` is SipHash under random keys: an attacker who chooses the items can't make
    /// them collide. Its values differ between processes, which is acceptable because slot
    /// positions are never stored or exchanged.
    hasher: RandomState,
}

impl<T: Clone + Eq + Hash> Table<T> {
    /// An empty table for `capacity` items that hashes with `hasher`.
    pub(crate) fn new(capacity: usize, hasher: RandomState) -> Self {
        let slots = (0..capacity.saturating_mul(2)).map(|_| OnceLock::new()).collect();
        Self { slots, used: AtomicUsize::new(0), hasher }
    }

    /// A table with the same items and the given capacity, or the number of items if that is more.
    pub(crate) fn resized(&self, capacity: usize) -> Self {
        let table = Self::new(capacity.max(self.len()), self.hasher.clone());
        for item in self.items() {
            // Can't fail: the capacity suffices for all of them.
            let _ = table.insert(item.clone());
        }
        table
    }

    /// Whether the table contains an item equal to `key`.
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

    /// Adds `item`, which must not be in the table. Returns it if the table is full.
    pub(crate) fn insert(&self, item: T) -> Result<(), T> {
        if self.len() >= self.capacity() {
            return Err(item);
        }
        let slots = self.probe(&item);
        let mut item = item;
        for slot in slots {
            match slot.set(item) {
                Ok(()) => {
                    self.used.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                Err(refused) => item = refused,
            }
        }
        Err(item)
    }

    /// The probe sequence of `key`. The table must have slots.
    #[inline]
    fn probe<'t, Q>(&'t self, key: &Q) -> impl Iterator<Item = &'t OnceLock<T>> + use<'t, T, Q>
    where
        Q: Hash + ?Sized,
    {
        // The upper half of the product maps a uniform hash to any number of slots.
        let hash = u128::from(self.hasher.hash_one(key));
        let start = ((hash * self.slots.len() as u128) >> 64) as usize;
        let (before, after) = self.slots.split_at(start);
        after.iter().chain(before)
    }

    /// The items, in unspecified order.
    pub(crate) fn items(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(OnceLock::get)
    }

    /// The number of items.
    pub(crate) fn len(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The most items that the table can hold.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.len() / 2
    }

    /// The number of slots: twice the capacity.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Bytes on the heap, without the heap memory of the items.
    pub(crate) fn bytes(&self) -> u64 {
        size_of_val(&*self.slots) as u64
    }
}
