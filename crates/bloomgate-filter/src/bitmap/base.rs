//! The base of a bitmap: sorted chunks, immutable except for the bits of its pages.

use std::cmp::Ordering;
use std::sync::Arc;

use super::directory::{Directory, Location, PackedLocation};
use super::page::{self, PAGE_BITS, Page};

/// The most ids that a chunk stores as an array. At 4096 ids an array is as large as a page.
pub(super) const MAX_IN_ARRAY: usize = 4096;

/// The fewest ids that the overlay holds before they are merged into the base.
const MIN_OVERLAY: usize = 1024;

/// Chunks and array ids of the base per id that the overlay may hold. Merging copies all of them,
/// so a set that grows by inserts copies about 17 entries in total for each entry of its final
/// size.
const BASE_PER_OVERLAY: usize = 16;

/// The chunk of an id, and its position within the chunk.
#[inline]
pub(super) fn split(id: u64) -> (u64, u16) {
    (id >> 16, id as u16)
}

/// Ids by chunk. A chunk with up to [`MAX_IN_ARRAY`] ids is a sorted array; all arrays share one
/// allocation. A chunk with more ids is a page.
///
/// A change makes a new base, except that bits of pages are set in place. Every base derived from
/// this one shares *the same* pages, so that such a bit is in the new base, too.
pub(super) struct Base {
    directory: Directory,
    chunks: usize,
    arrays: Box<[u16]>,
    pages: Box<[Arc<Page>]>,
}

/// The ids of one chunk.
pub(super) enum Chunk<'a> {
    /// Their positions, ascending, at least one.
    Array(&'a [u16]),
    /// Their bits.
    Page(&'a Arc<Page>),
}

impl Base {
    /// A base of `ids`, which are strictly ascending.
    pub(super) fn from_ids(ids: &[u64]) -> Self {
        let mut builder = BaseBuilder::with_capacity(0, ids.len(), 0);
        for of_chunk in ids.chunk_by(|a, b| split(*a).0 == split(*b).0) {
            let start = builder.arrays.len();
            builder.arrays.extend(of_chunk.iter().map(|&id| split(id).1));
            builder.close_array(split(of_chunk[0]).0, start);
        }
        builder.finish()
    }

    /// The ids of chunk `number`, if it has any.
    #[inline]
    pub(super) fn chunk(&self, number: u64) -> Option<Chunk<'_>> {
        self.directory.get(number).map(|location| self.at(location))
    }

    /// Every chunk in ascending order of the numbers.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (u64, Chunk<'_>)> {
        self.directory.iter().map(|(number, location)| (number, self.at(location)))
    }

    #[inline]
    fn at(&self, location: Location) -> Chunk<'_> {
        match location {
            Location::Page(index) => Chunk::Page(&self.pages[index]),
            Location::Array { start, len } => Chunk::Array(&self.arrays[start..start + len]),
        }
    }

    /// A base with the ids of both, and how many ids of `other` were not in this one.
    ///
    /// The new base shares the pages of this one, which receive the bits of `other` immediately.
    /// Pages of `other` are copied: later inserts into `other` must not appear here.
    pub(super) fn union(&self, other: &Base) -> (Base, u64) {
        let mut builder = BaseBuilder::with_capacity(
            self.chunks.max(other.chunks),
            self.arrays.len() + other.arrays.len(),
            self.pages.len() + other.pages.len(),
        );
        let mut new = 0;
        let mut own = self.chunks().peekable();
        let mut others = other.chunks().peekable();
        loop {
            // The side with the lower chunk number; an exhausted side counts as higher.
            let side = match (own.peek(), others.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((a, _)), Some((b, _))) => a.cmp(b),
            };
            let left = own.next_if(|_| side.is_le());
            let right = others.next_if(|_| side.is_ge());
            new += builder.push_union(left, right);
        }
        (builder.finish(), new)
    }

    /// The numbers of chunks, of ids in arrays, and of pages.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        (self.chunks, self.arrays.len(), self.pages.len())
    }

    /// How many ids the overlay may hold before it is merged into this base.
    pub(super) fn overlay_capacity(&self) -> usize {
        ((self.arrays.len() + self.chunks) / BASE_PER_OVERLAY).max(MIN_OVERLAY)
    }

    /// Slots for ids: the bits of pages and the entries of arrays.
    pub(super) fn slots(&self) -> u64 {
        self.pages.len() as u64 * PAGE_BITS + self.arrays.len() as u64
    }

    /// Bytes on the heap, constant time.
    pub(super) fn bytes(&self) -> u64 {
        // A page is one allocation that begins with the two counters of its `Arc`.
        let page = size_of::<Page>() + 2 * size_of::<usize>();
        let pages = size_of_val(&*self.pages) + self.pages.len() * page;
        self.directory.bytes() + (size_of_val(&*self.arrays) + pages) as u64
    }
}

/// Builds a base from chunks in strictly ascending order.
#[derive(Default)]
pub(super) struct BaseBuilder {
    chunks: Vec<(u64, PackedLocation)>,
    arrays: Vec<u16>,
    pages: Vec<Arc<Page>>,
}

impl BaseBuilder {
    fn with_capacity(chunks: usize, in_arrays: usize, pages: usize) -> Self {
        Self {
            chunks: Vec::with_capacity(chunks),
            arrays: Vec::with_capacity(in_arrays),
            pages: Vec::with_capacity(pages),
        }
    }

    /// Adds a chunk of these positions: at least one, strictly ascending.
    pub(super) fn push_array(&mut self, number: u64, positions: &[u16]) {
        let start = self.arrays.len();
        self.arrays.extend_from_slice(positions);
        self.close_array(number, start);
    }

    /// Adds a chunk of this page.
    pub(super) fn push_page(&mut self, number: u64, page: Arc<Page>) {
        self.push(number, Location::Page(self.pages.len()));
        self.pages.push(page);
    }

    /// Makes a chunk of the array entries from `start` on, or a page if they are too many.
    fn close_array(&mut self, number: u64, start: usize) {
        let len = self.arrays.len() - start;
        if len <= MAX_IN_ARRAY {
            self.push(number, Location::Array { start, len });
        } else {
            let page = Page::from_positions(&self.arrays[start..]);
            self.arrays.truncate(start);
            self.push_page(number, Arc::new(page));
        }
    }

    /// Adds the union of two chunks with the same number, either of which may be missing, and
    /// returns how many ids are only in `right`. A page in `left` is shared, not copied.
    fn push_union(
        &mut self,
        left: Option<(u64, Chunk<'_>)>,
        right: Option<(u64, Chunk<'_>)>,
    ) -> u64 {
        match (left, right) {
            (None, None) => 0,
            (Some((number, Chunk::Page(page))), right) => {
                let new = match right {
                    None => 0,
                    Some((_, Chunk::Page(right))) => page.insert_words(&right.words()),
                    Some((_, Chunk::Array(right))) => {
                        right.iter().map(|&position| u64::from(page.insert(position))).sum()
                    }
                };
                self.push_page(number, Arc::clone(page));
                new
            }
            (Some((number, Chunk::Array(left))), None) => {
                self.push_array(number, left);
                0
            }
            (None, Some((number, Chunk::Array(right)))) => {
                self.push_array(number, right);
                right.len() as u64
            }
            (Some((number, Chunk::Array(left))), Some((_, Chunk::Array(right)))) => {
                let start = self.arrays.len();
                merge_sorted(left, right, &mut self.arrays);
                let new = self.arrays.len() - start - left.len();
                self.close_array(number, start);
                new as u64
            }
            (left, Some((number, Chunk::Page(right)))) => {
                // Counted in the copy: `right` may receive more ids meanwhile.
                let words = right.words();
                let page = Page::from_words(&words);
                let mut new = page::count(&words);
                if let Some((_, Chunk::Array(left))) = left {
                    new -= left.iter().filter(|&&position| !page.insert(position)).count() as u64;
                }
                self.push_page(number, Arc::new(page));
                new
            }
        }
    }

    fn push(&mut self, number: u64, location: Location) {
        self.chunks.push((number, PackedLocation::pack(location)));
    }

    /// The finished base.
    pub(super) fn finish(self) -> Base {
        Base {
            directory: Directory::new(&self.chunks),
            chunks: self.chunks.len(),
            arrays: self.arrays.into_boxed_slice(),
            pages: self.pages.into_boxed_slice(),
        }
    }
}

/// Appends the union of two strictly ascending slices to `out`, strictly ascending.
fn merge_sorted(mut left: &[u16], mut right: &[u16], out: &mut Vec<u16>) {
    while let ([a, left_rest @ ..], [b, right_rest @ ..]) = (left, right) {
        out.push(*a.min(b));
        if a <= b {
            left = left_rest;
        }
        if b <= a {
            right = right_rest;
        }
    }
    out.extend_from_slice(left);
    out.extend_from_slice(right);
}
