//! The ids of a bitmap that are not sorted in yet.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// An open-addressing table with linear probing. At most half of its slots are ever taken, so that
/// every probe soon meets an empty one.
///
/// It is a [`Table`](crate::table::Table) of bare integers: the same rules keep readers from missing
/// an id, in half the memory. Readers need nothing but `&self`; writers must take turns.
pub(super) struct Overlay {
    /// An id, or 0 for an empty slot.
    slots: Box<[AtomicU64]>,
    /// Whether the id 0 is in.
    zero: AtomicBool,
    taken: AtomicUsize,
    /// Random keys, so that nobody can choose ids that collide. The hashes never leave the process.
    hasher: RandomState,
}

impl Overlay {
    /// An empty overlay with capacity for `capacity` ids, hashing with `hasher`.
    pub(super) fn new(capacity: usize, hasher: RandomState) -> Self {
        Self {
            slots: (0..capacity.saturating_mul(2)).map(|_| AtomicU64::new(0)).collect(),
            zero: AtomicBool::new(false),
            taken: AtomicUsize::new(0),
            hasher,
        }
    }

    /// An overlay with capacity for `capacity` ids and the ids of this one, which must be no more.
    pub(super) fn resized(&self, capacity: usize) -> Self {
        let overlay = Self::new(capacity, self.hasher.clone());
        for id in self.ids() {
            overlay.insert(id);
        }
        overlay
    }

    /// An empty overlay without slots that hashes as this one does.
    pub(super) fn emptied(&self) -> Self {
        Self::new(0, self.hasher.clone())
    }

    /// Whether `id` is in.
    #[inline]
    pub(super) fn contains(&self, id: u64) -> bool {
        if self.slots.is_empty() {
            return false;
        }
        if id == 0 {
            return self.zero.load(Ordering::Acquire);
        }
        let met = self.probe(id).map(|slot| slot.load(Ordering::Acquire));
        met.take_while(|&taken| taken != 0).any(|taken| taken == id)
    }

    /// Adds `id`, of which the caller knows that it isn't in. `false` if there is no capacity.
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
        self.taken.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// The slots in the order in which `id` looks for its place.
    #[inline]
    fn probe(&self, id: u64) -> impl Iterator<Item = &AtomicU64> {
        // The upper half of the product maps a uniform hash onto the slots, however many.
        let hash = u128::from(self.hasher.hash_one(id));
        let start = ((hash * self.slots.len() as u128) >> 64) as usize;
        let (before, after) = self.slots.split_at(start);
        after.iter().chain(before)
    }

    /// The ids, in no order that means anything.
    pub(super) fn ids(&self) -> impl Iterator<Item = u64> {
        let zero = self.zero.load(Ordering::Acquire).then_some(0);
        let others = self.slots.iter().map(|slot| slot.load(Ordering::Acquire));
        zero.into_iter().chain(others.filter(|&id| id != 0))
    }

    /// The number of ids.
    pub(super) fn len(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// How many ids fit.
    pub(super) fn capacity(&self) -> usize {
        self.slots.len() / 2
    }

    /// The number of slots, twice the capacity.
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
