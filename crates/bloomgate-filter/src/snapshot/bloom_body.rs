//! The snapshot body of both Bloom filters: their words in order.

use std::io::{Read, Write};

use super::header::{FamilyParams, HasherParams, Header};
use super::stream::{BodyReader, SnapshotWriter};
use crate::alloc::try_vec_with_capacity;
use crate::block::Block;
use crate::bloom::BloomFilter;
use crate::classic::ClassicBloom;
use crate::error::Error;
use crate::hash::KeyedHasher;
use crate::layout::BLOCK_BYTES;
use crate::sizing::{BloomParams, ClassicParams};

pub(super) fn write_bloom<W: Write>(
    filter: &BloomFilter,
    position: &[u8],
    out: W,
) -> Result<(), Error> {
    let header = Header {
        family_params: FamilyParams::Bloom(*filter.params(), HasherParams::new(filter.hasher())),
        items: filter.stats().items,
        body_bytes: filter.params().bytes(),
        position: position.into(),
    };
    let mut writer = SnapshotWriter::new(out, &header)?;
    for block in filter.blocks() {
        writer.put(&block.to_le_bytes())?;
    }
    writer.finish()
}

pub(super) fn read_bloom<R: Read>(
    params: BloomParams,
    hasher: KeyedHasher,
    items: u64,
    body: BodyReader<R>,
) -> Result<BloomFilter, Error> {
    let mut blocks = try_vec_with_capacity(params.blocks(), params.bytes())?;
    body.read(|piece| {
        let (stored, _) = piece.as_chunks::<{ BLOCK_BYTES as usize }>();
        blocks.extend(stored.iter().map(Block::from_le_bytes));
    })?;
    BloomFilter::from_blocks(params, hasher, items, blocks)
        .ok_or(Error::SnapshotField { field: "body", reason: "has the wrong number of blocks" })
}

pub(super) fn write_classic<W: Write>(
    filter: &ClassicBloom,
    position: &[u8],
    out: W,
) -> Result<(), Error> {
    let header = Header {
        family_params: FamilyParams::Classic(*filter.params(), HasherParams::new(filter.hasher())),
        items: filter.stats().items,
        body_bytes: filter.params().bytes(),
        position: position.into(),
    };
    let mut writer = SnapshotWriter::new(out, &header)?;
    for word in filter.words() {
        writer.put(&word.to_le_bytes())?;
    }
    writer.finish()
}

pub(super) fn read_classic<R: Read>(
    params: ClassicParams,
    hasher: KeyedHasher,
    items: u64,
    body: BodyReader<R>,
) -> Result<ClassicBloom, Error> {
    let mut words = try_vec_with_capacity(params.words(), params.bytes())?;
    body.read(|piece| {
        let (stored, _) = piece.as_chunks::<8>();
        words.extend(stored.iter().map(|&word| u64::from_le_bytes(word)));
    })?;
    ClassicBloom::from_words(params, hasher, items, words)
        .ok_or(Error::SnapshotField { field: "body", reason: "has bits set beyond the last one" })
}
