//! The snapshot body of a bitmap: its chunks in ascending order.
//!
//! A chunk begins with a word: its number in the upper 48 bits; in the lower 16 the number of
//! positions that follow, or 0 for a page.

use std::io::{Read, Write};

use super::header::{FamilyParams, Header, invalid};
use super::stream::{BodyReader, SnapshotWriter};
use super::{Persist, sealed::WriteBody};
use crate::bitmap::Bitmap;
use crate::bitmap::snapshot_view::{BitmapBuilder, ChunkRules, ChunkView, PAGE_WORDS};
use crate::error::Error;

/// Bytes of a page.
const PAGE_BYTES: usize = 8 * PAGE_WORDS;

/// Bytes of the shortest chunk: its word and one position.
pub(super) const MIN_BYTES: u64 = 10;

impl Persist for Bitmap {}

impl WriteBody for Bitmap {
    fn write_snapshot(&self, position: &[u8], out: &mut dyn Write) -> Result<(), Error> {
        let non_integer_keys = self.has_non_integer_keys();
        let view = self.snapshot_view();
        let counts = view.counts();
        let header = Header {
            family_params: FamilyParams::Bitmap { chunks: counts.chunks, non_integer_keys },
            items: self.stats().items,
            body_bytes: 8 * counts.chunks + 2 * counts.in_arrays + PAGE_BYTES as u64 * counts.pages,
            position: position.into(),
        };
        let mut writer = SnapshotWriter::new(out, &header)?;
        for (number, chunk) in view.chunks() {
            match chunk {
                ChunkView::Array(positions) => {
                    writer.put(&(number << 16 | positions.len() as u64).to_le_bytes())?;
                    for position in positions {
                        writer.put(&position.to_le_bytes())?;
                    }
                }
                ChunkView::Page(words) => {
                    writer.put(&(number << 16).to_le_bytes())?;
                    for word in *words {
                        writer.put(&word.to_le_bytes())?;
                    }
                }
            }
        }
        writer.finish()
    }
}

pub(super) fn read<R: Read>(
    chunks: u64,
    non_integer_keys: bool,
    items: u64,
    body: BodyReader<R>,
) -> Result<Bitmap, Error> {
    let bytes = body.into_bytes()?;
    // Validated before the bitmap is built, which can take several times the memory.
    let mut rules = ChunkRules::default();
    for_each_chunk(&bytes, chunks, |number, chunk| match chunk {
        Chunk::Array(positions) => rules.allow_array(number, positions),
        Chunk::Page(words) => rules.allow_page(number, words),
    })?;
    let mut builder = BitmapBuilder::default();
    for_each_chunk(&bytes, chunks, |number, chunk| match chunk {
        Chunk::Array(positions) => builder.push_array(number, positions),
        Chunk::Page(words) => builder.push_page(number, words),
    })?;
    Ok(builder.finish(items, non_integer_keys))
}

/// The ids of one chunk.
enum Chunk<'a> {
    Array(&'a [u16]),
    Page(&'a [u64; PAGE_WORDS]),
}

/// Calls `accept` with the number and the ids of each chunk of a body, until it returns `false`,
/// which is an error. There must be exactly `chunks` chunks.
fn for_each_chunk(
    body: &[u8],
    chunks: u64,
    mut accept: impl FnMut(u64, Chunk<'_>) -> bool,
) -> Result<(), Error> {
    let mut rest = body;
    let mut positions = Vec::new();
    for _ in 0..chunks {
        let Some((word, after)) = rest.split_first_chunk() else {
            return invalid("body", "has fewer chunks than the header states");
        };
        let word = u64::from_le_bytes(*word);
        let (number, count) = (word >> 16, usize::from(word as u16));
        let length = if count == 0 { PAGE_BYTES } else { 2 * count };
        let Some((ids, after)) = after.split_at_checked(length) else {
            return invalid("body", "ends within a chunk");
        };
        let accepted = if count == 0 {
            let (words, _) = ids.as_chunks();
            let words = std::array::from_fn(|at| u64::from_le_bytes(words[at]));
            accept(number, Chunk::Page(&words))
        } else {
            let (ids, _) = ids.as_chunks();
            positions.clear();
            positions.extend(ids.iter().map(|&position| u16::from_le_bytes(position)));
            accept(number, Chunk::Array(&positions))
        };
        if !accepted {
            return invalid("body", "has a chunk that is out of order or of the wrong kind");
        }
        rest = after;
    }
    if !rest.is_empty() {
        return invalid("body", "has more chunks than the header states");
    }
    Ok(())
}
