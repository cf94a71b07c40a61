//! Bloom filters of either kind as snapshots: their words, in order.

use std::io::{Read, Write};

use super::header::{HashedBy, Header, Shape};
use super::stream::{Body, Sink};
use crate::block::Block;
use crate::bloom::BloomFilter;
use crate::classic::ClassicBloom;
use crate::error::Error;
use crate::hash::KeyedHasher;
use crate::layout::BLOCK_BYTES;
use crate::room::room_for;
use crate::sizing::{BloomParams, ClassicParams};

pub(super) fn write_bloom<W: Write>(
    filter: &BloomFilter,
    position: &[u8],
    out: W,
) -> Result<(), Error> {
    let header = Header {
        shape: Shape::Bloom(*filter.plan(), HashedBy::new(filter.hasher())),
        items: filter.stats().items,
        body_bytes: filter.plan().bytes(),
        position: position.into(),
    };
    let mut sink = Sink::new(out, &header)?;
    for block in filter.blocks() {
        sink.put(&block.to_le_bytes())?;
    }
    sink.finish()
}

pub(super) fn read_bloom<R: Read>(
    plan: BloomParams,
    hasher: KeyedHasher,
    items: u64,
    body: Body<R>,
) -> Result<BloomFilter, Error> {
    let mut blocks = room_for(plan.blocks(), plan.bytes())?;
    body.read(|piece| {
        let (stored, _) = piece.as_chunks::<{ BLOCK_BYTES as usize }>();
        blocks.extend(stored.iter().map(Block::from_le_bytes));
    })?;
    BloomFilter::from_blocks(plan, hasher, items, blocks)
        .ok_or(Error::SnapshotField { field: "body", reason: "has another number of blocks" })
}

pub(super) fn write_classic<W: Write>(
    filter: &ClassicBloom,
    position: &[u8],
    out: W,
) -> Result<(), Error> {
    let header = Header {
        shape: Shape::Classic(*filter.plan(), HashedBy::new(filter.hasher())),
        items: filter.stats().items,
        body_bytes: filter.plan().bytes(),
        position: position.into(),
    };
    let mut sink = Sink::new(out, &header)?;
    for word in filter.words() {
        sink.put(&word.to_le_bytes())?;
    }
    sink.finish()
}

pub(super) fn read_classic<R: Read>(
    plan: ClassicParams,
    hasher: KeyedHasher,
    items: u64,
    body: Body<R>,
) -> Result<ClassicBloom, Error> {
    let mut words = room_for(plan.words(), plan.bytes())?;
    body.read(|piece| {
        let (stored, _) = piece.as_chunks::<8>();
        words.extend(stored.iter().map(|&word| u64::from_le_bytes(word)));
    })?;
    ClassicBloom::from_words(plan, hasher, items, words)
        .ok_or(Error::SnapshotField { field: "body", reason: "has bits set beyond the last one" })
}
