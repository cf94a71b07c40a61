//! The published state of a bitmap: a base, with an overlay of newer ids.

use std::hash::RandomState;
use std::sync::Arc;

use super::base::{Base, Chunk, split};
use super::overlay::Overlay;

/// The capacity of the first overlay that is not empty.
const INITIAL_CAPACITY: usize = 16;

/// The factor by which overlays grow.
const GROWTH: usize = 4;

/// All ids of a bitmap. An id is in a page of the base, in an array of the base, or in the overlay.
///
/// The overlay holds no id whose chunk is a page, so that a lookup in a page is sufficient.
pub(super) struct State {
    base: Arc<Base>,
    overlay: Overlay,
}

impl State {
    /// The state of a bitmap that holds what `base` holds.
    pub(super) fn new(base: Base) -> Self {
        Self { base: Arc::new(base), overlay: Overlay::new(0, RandomState::new()) }
    }

    #[inline]
    pub(super) fn contains(&self, id: u64) -> bool {
        let (chunk, position) = split(id);
        match self.base.chunk(chunk) {
            Some(Chunk::Page(page)) => page.contains(position),
            Some(Chunk::Array(positions)) if positions.binary_search(&position).is_ok() => true,
            _ => self.overlay.contains(id),
        }
    }

    /// Adds `id` if its chunk is a page, and returns whether it was new. `None` if `id` is absent
    /// and must be added to the overlay.
    ///
    /// Needs no lock, even in a state that has been replaced: later states share the page.
    #[inline]
    pub(super) fn insert_in_place(&self, id: u64) -> Option<bool> {
        let (chunk, position) = split(id);
        match self.base.chunk(chunk) {
            Some(Chunk::Page(page)) => Some(page.insert(position)),
            // An id that is present stays present.
            _ => self.contains(id).then_some(false),
        }
    }

    /// Adds `id`, which must be absent and whose chunk must not be a page, to the overlay. `false`
    /// if the overlay is full. The caller must hold the write lock, and this must be the published
    /// state.
    pub(super) fn insert_into_overlay(&self, id: u64) -> bool {
        self.overlay.insert(id)
    }

    /// A state with the same ids and a free slot in its overlay: either a larger overlay, or an
    /// empty one beside a new base. The caller must hold the write lock.
    pub(super) fn with_free_slot(&self) -> Self {
        let max = self.base.overlay_capacity();
        let capacity = self.overlay.capacity();
        if capacity < max {
            let overlay = self.overlay.resized((GROWTH * capacity).clamp(INITIAL_CAPACITY, max));
            Self { base: Arc::clone(&self.base), overlay }
        } else {
            self.compacted()
        }
    }

    /// A state with the same ids, all of them in the base.
    ///
    /// Ids inserted into the overlay during the call may be missing: publish the result only if the
    /// write lock was held.
    pub(super) fn compacted(&self) -> Self {
        let overlay = self.overlay.emptied();
        let mut ids: Vec<u64> = self.overlay.ids().collect();
        if ids.is_empty() {
            return Self { base: Arc::clone(&self.base), overlay };
        }
        ids.sort_unstable();
        let (base, _) = self.base.union(&Base::from_ids(&ids));
        Self { base: Arc::new(base), overlay }
    }

    /// A state with the ids of both, and how many ids of `other` were not in this one. The caller
    /// must hold the write lock of this state's bitmap; `other` may be a state of any bitmap.
    pub(super) fn union(&self, other: &State) -> (Self, u64) {
        let Self { base, overlay } = self.compacted();
        let (base, new) = base.union(&other.compacted().base);
        (Self { base: Arc::new(base), overlay }, new)
    }

    /// The base, without the ids of the overlay.
    pub(super) fn base(&self) -> &Arc<Base> {
        &self.base
    }

    /// Slots for ids: bits of pages, entries of arrays and slots of the overlay.
    pub(super) fn slots(&self) -> u64 {
        self.base.slots() + self.overlay.slots() as u64
    }

    /// Bytes on the heap, this state included; constant time.
    pub(super) fn bytes(&self) -> u64 {
        // State and base are one allocation each, which begins with the two counters of an `Arc`.
        let fixed = size_of::<Self>() + size_of::<Base>() + 4 * size_of::<usize>();
        self.base.bytes() + self.overlay.bytes() + fixed as u64
    }
}
