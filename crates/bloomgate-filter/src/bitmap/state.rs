//! What a bitmap publishes: a base, with an overlay of ids that are not in it yet.

use std::hash::RandomState;
use std::sync::Arc;

use super::base::{Base, Chunk, split};
use super::overlay::Overlay;

/// The least capacity that an overlay is made with.
const INITIAL_CAPACITY: usize = 16;

/// How much larger each overlay is than the one before it.
const GROWTH: usize = 4;

/// All ids of a bitmap. An id is in a page of the base, in an array of the base, or in the overlay.
///
/// The overlay holds no id whose chunk is a page: a page answers alone.
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

    /// Adds `id` if its chunk is a page. Whether it was new; `None` if it is not in and has to go
    /// into the overlay.
    ///
    /// Needs no turn, even in a state that was replaced meanwhile: later states have the same page.
    #[inline]
    pub(super) fn insert_in_place(&self, id: u64) -> Option<bool> {
        let (chunk, position) = split(id);
        match self.base.chunk(chunk) {
            Some(Chunk::Page(page)) => Some(page.insert(position)),
            // What is in stays in.
            _ => self.contains(id).then_some(false),
        }
    }

    /// Adds `id`, which is not in and whose chunk is no page, to the overlay. `false` if that is
    /// full. Only for the writer whose turn it is, and only in the published state.
    pub(super) fn insert_into_overlay(&self, id: u64) -> bool {
        self.overlay.insert(id)
    }

    /// A state with the same ids and capacity for one more in its overlay: a larger one, or an empty
    /// one after its ids went into a new base. Only for the writer whose turn it is.
    pub(super) fn with_free_slot(&self) -> Self {
        let most = self.base.overlay_capacity();
        let capacity = self.overlay.capacity();
        if capacity < most {
            let overlay = self.overlay.resized((GROWTH * capacity).clamp(INITIAL_CAPACITY, most));
            Self { base: Arc::clone(&self.base), overlay }
        } else {
            self.compacted()
        }
    }

    /// A state with the same ids, all of them in the base.
    ///
    /// What is inserted into the overlay meanwhile may be missing: only what the writer whose turn
    /// it is makes in this way may be published.
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

    /// A state with the ids of both, and how many of `other`'s ids were not here. Only for the
    /// writer whose turn it is in the bitmap of this state; `other` may be of any bitmap.
    pub(super) fn union(&self, other: &State) -> (Self, u64) {
        let Self { base, overlay } = self.compacted();
        let (base, new) = base.union(&other.compacted().base);
        (Self { base: Arc::new(base), overlay }, new)
    }

    /// The base, without what is in the overlay.
    pub(super) fn base(&self) -> &Arc<Base> {
        &self.base
    }

    /// Places for ids: bits of pages, entries of arrays and slots of the overlay.
    pub(super) fn slots(&self) -> u64 {
        self.base.slots() + self.overlay.slots() as u64
    }

    /// Bytes on the heap, this state included; constant time.
    pub(super) fn bytes(&self) -> u64 {
        // State and base are each an allocation that the two counters of an `Arc` head.
        let fixed = size_of::<Self>() + size_of::<Base>() + 4 * size_of::<usize>();
        self.base.bytes() + self.overlay.bytes() + fixed as u64
    }
}
