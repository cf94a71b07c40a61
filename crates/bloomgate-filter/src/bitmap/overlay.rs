//! The overlay of a bitmap: a hash table of the ids that are not sorted in yet.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// An open-addressing table with linear probing. At most half of its slots are used, so probes are
/// short.
///
/// It is a [`Table`](crate::table::Table) specialised for integers, in half the memory; the same
/// argument shows that readers can't miss an id. Readers need only `&self`; writers must hold the
/// write lock.
pub(super) struct Overlay {
    /// An id, or 0 for an empty slot.
    slots: Box<[AtomicU64]>,
    /// Whether the overlay contains the id 0.
    zero: AtomicBool,
    used: AtomicUsize,
    /// Random keys: an attacker can't choose ids that collide. The hashes never leave the process.
    hasher: RandomState,
}

impl Overlay {
    /// An empty overlay for `capacity` ids that hashes with `hasher`.
    pub(super) fn new(capacity: usize, hasher: RandomState) -> Self {
        Self {
            slots: (0..capacity.saturating_mul(2)).map(|_| AtomicU64::new(0)).collect(),
            zero: AtomicBool::new(false),
            used: AtomicUsize::new(0),
            hasher,
        }
    }

    /// An overlay with the same ids and the given capacity, which must suffice for them.
    pub(super) fn resized(&self, capacity: usize) -> Self {
        let overlay = Self::new(capacity, self.hasher.clone());
        for id in self.ids() {
            overlay.insert(id);
        }
        overlay
    }

    /// An empty overlay of capacity 0 with the same hasher.
    pub(super) fn emptied(&self) -> Self {
        Self::new(0, self.hasher.clone())
    }

    /// Whether the overlay contains `id`.
    #[inline]
    pub(super) fn contains(&self, id: u64) -> bool {
        if self.slots.is_empty() {
            return false;
        }
        if id == 0 {
            return self.zero.load(Ordering::Acquire);
        }
        let entries = self.probe(id).map(|slot| slot.load(Ordering::Acquire));
        entries.take_while(|&entry| entry != 0).any(|entry| entry == id)
    }

    /// Adds `id`, which must not be in the overlay. `false` if the overlay is full.
    pub(super) fn insert(&self, id: u64) -> bool {
        if self.len() >= self.capacity() {
            return false;
        }
        if id == 0 {
            self.zero.store(true, Ordering::Release);
        } else {
            let Some(slot) = self.probe(id).find(|slot| slot.load(Ordering::Relaxed) == 0) else {
                return false;
            };
            slot.store(id, Ordering::Release);
        }
        self.used.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// The probe sequence of `id`.
    #[inline]
    fn probe(&self, id: u64) -> impl Iterator<Item = &AtomicU64> {
        // The upper half of the product maps a uniform hash to any number of slots.
        let hash = u128::from(self.hasher.hash_one(id));
        let start = ((hash * self.slots.len() as u128) >> 64) as usize;
        let (before, after) = self.slots.split_at(start);
        after.iter().chain(before)
    }

    /// The ids, in unspecified order.
    pub(super) fn ids(&self) -> impl Iterator<Item = u64> {
        let zero = self.zero.load(Ordering::Acquire).then_some(0);
        let others = self.slots.iter().map(|slot| slot.load(Ordering::Acquire));
        zero.into_iter().chain(others.filter(|&id| id != 0))
    }

    /// The number of ids.
    pub(super) fn len(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The most ids that the overlay can hold.
    pub(super) fn capacity(&self) -> usize {
        self.slots.len() / 2
    }

    /// The number of slots: twice the capacity.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> u64 {
        size_of_val(&*self.slots) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn overlay_finds_every_inserted_id() {
        let overlay = Overlay::new(30, RandomState::new());
        let ids: Vec<u64> = (0..29).chain([u64::MAX]).collect();
        for (at, &id) in ids.iter().enumerate() {
            assert!(!overlay.contains(id));
            assert!(overlay.insert(id));
            assert!(ids[..=at].iter().all(|&id| overlay.contains(id)));
        }
        assert_eq!(overlay.len(), 30);
        assert!(!overlay.insert(99) && !overlay.contains(99));
        assert_eq!(overlay.ids().collect::<BTreeSet<_>>(), ids.into_iter().collect());
    }

    #[test]
    fn resized_overlay_holds_the_same_ids() {
        let small = Overlay::new(3, RandomState::new());
        for id in [0, 7, u64::MAX] {
            assert!(small.insert(id));
        }
        assert!(!small.insert(8));
        for capacity in [3, 4, 50] {
            let resized = small.resized(capacity);
            assert_eq!(
                (resized.len(), resized.capacity(), resized.slots()),
                (3, capacity, 2 * capacity)
            );
            assert!([0, 7, u64::MAX].iter().all(|&id| resized.contains(id)));
            assert!(!resized.contains(8));
        }
        let empty = small.emptied();
        assert!(!empty.contains(0) && !empty.contains(7) && !empty.insert(7) && !empty.insert(0));
        assert_eq!((empty.len(), empty.bytes()), (0, 0));
    }
}
