//! The chunks of a bitmap as snapshots store them.

use std::sync::Arc;

use super::Bitmap;
use super::base::{Base, BaseBuilder, Chunk, MAX_IN_ARRAY};
use super::directory::CHUNKS;
pub(crate) use super::page::PAGE_WORDS;
use super::page::{self, Page};

/// A view of the ids of a bitmap, for writing a snapshot.
pub(crate) struct SnapshotView(Arc<Base>);

/// The counts that determine the length of a stored bitmap.
pub(crate) struct Counts {
    /// Chunks of both kinds.
    pub(crate) chunks: u64,
    /// Positions in the arrays of all chunks.
    pub(crate) in_arrays: u64,
    /// Chunks that are pages.
    pub(crate) pages: u64,
}

/// The ids of one chunk, which are `chunk << 16 | position`.
pub(crate) enum ChunkView<'a> {
    /// Positions, strictly ascending, 1 to 4096 of them.
    Array(&'a [u16]),
    /// One bit per position; position 0 is the least significant bit of the first word. More than
    /// 4096 bits are set.
    Page(Box<[u64; PAGE_WORDS]>),
}

impl Bitmap {
    /// A view of all ids that were in the set when the call began, and possibly of later ones.
    ///
    /// Merges the overlay as [`compact`](Bitmap::compact) does. Non-integer keys are not part of
    /// the view: see [`has_non_integer_keys`](Bitmap::has_non_integer_keys).
    pub(crate) fn snapshot_view(&self) -> SnapshotView {
        let _lock = self.write_lock();
        SnapshotView(Arc::clone(self.publish_compacted().base()))
    }
}

impl SnapshotView {
    /// The counts of the view. Later inserts don't change them.
    pub(crate) fn counts(&self) -> Counts {
        let (chunks, in_arrays, pages) = self.0.counts();
        Counts { chunks: chunks as u64, in_arrays: in_arrays as u64, pages: pages as u64 }
    }

    /// Number and ids of each chunk, in strictly ascending order of the numbers. Copies one page at
    /// a time.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (u64, ChunkView<'_>)> {
        self.0.chunks().map(|(number, chunk)| match chunk {
            Chunk::Array(positions) => (number, ChunkView::Array(positions)),
            Chunk::Page(page) => (number, ChunkView::Page(Box::new(page.words()))),
        })
    }
}

/// Validates the sequence of chunks of a stored bitmap.
#[derive(Default)]
pub(crate) struct ChunkRules {
    last: Option<u64>,
}

impl ChunkRules {
    /// Whether an array is valid as the next chunk: `chunk` is below 2^48 and above the last one,
    /// and there are 1 to 4096 strictly ascending positions.
    #[must_use]
    pub(crate) fn allow_array(&mut self, chunk: u64, positions: &[u16]) -> bool {
        let ascending = positions.windows(2).all(|pair| pair[0] < pair[1]);
        (1..=MAX_IN_ARRAY).contains(&positions.len()) && ascending && self.allow(chunk)
    }

    /// Whether a page is valid as the next chunk: `chunk` is below 2^48 and above the last one, and
    /// more than 4096 bits are set.
    #[must_use]
    pub(crate) fn allow_page(&mut self, chunk: u64, words: &[u64; PAGE_WORDS]) -> bool {
        page::count(words) > MAX_IN_ARRAY as u64 && self.allow(chunk)
    }

    fn allow(&mut self, chunk: u64) -> bool {
        let allowed = chunk < CHUNKS && self.last.is_none_or(|last| last < chunk);
        if allowed {
            self.last = Some(chunk);
        }
        allowed
    }
}

/// Builds a bitmap from chunks in strictly ascending order.
///
/// Arbitrary input is safe: a chunk that can't come from a [`SnapshotView`] is refused.
#[derive(Default)]
pub(crate) struct BitmapBuilder {
    base: BaseBuilder,
    rules: ChunkRules,
    ids: u64,
}

impl BitmapBuilder {
    /// Adds an array. `false`, without a change, if [`ChunkRules`] refuse it.
    #[must_use]
    pub(crate) fn push_array(&mut self, chunk: u64, positions: &[u16]) -> bool {
        let allowed = self.rules.allow_array(chunk, positions);
        if allowed {
            self.base.push_array(chunk, positions);
            self.ids += positions.len() as u64;
        }
        allowed
    }

    /// Adds a page. `false`, without a change, if [`ChunkRules`] refuse it.
    #[must_use]
    pub(crate) fn push_page(&mut self, chunk: u64, words: &[u64; PAGE_WORDS]) -> bool {
        let allowed = self.rules.allow_page(chunk, words);
        if allowed {
            self.base.push_page(chunk, Arc::new(Page::from_words(words)));
            self.ids += page::count(words);
        }
        allowed
    }

    /// The bitmap, with a count of `inserts` inserts or of the number of ids, whichever is more.
    /// `non_integer_keys`: whether the set had non-integer keys.
    pub(crate) fn finish(self, inserts: u64, non_integer_keys: bool) -> Bitmap {
        Bitmap::from_base(self.base.finish(), self.ids, inserts.max(self.ids), non_integer_keys)
    }
}
