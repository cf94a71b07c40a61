//! The snapshot body of both Bloom filters: their words in order.

use std::io::{Read, Write};

use super::header::{FamilyParams, HasherParams, Header};
use super::stream::{BodyReader, SnapshotWriter};
use super::{Persist, sealed::WriteBody};
use crate::alloc::try_vec_with_capacity;
use crate::block::Block;
use crate::bloom::BloomFilter;
use crate::classic::ClassicBloom;
use crate::error::Error;
use crate::hash::KeyedHasher;
use crate::layout::BLOCK_BYTES;
use crate::sizing::{BloomParams, ClassicParams};

impl Persist for BloomFilter {}

impl WriteBody for BloomFilter {
    fn write_snapshot(&self, position: &[u8], out: &mut dyn Write) -> Result<(), Error> {
        let header = Header {
            family_params: FamilyParams::Bloom(*self.params(), HasherParams::new(self.hasher())),
            items: self.stats().items,
            body_bytes: self.params().bytes(),
            position: position.into(),
        };
        let mut writer = SnapshotWriter::new(out, &header)?;
        for block in self.blocks() {
            writer.put(&block.to_le_bytes())?;
        }
        writer.finish()
    }
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

impl Persist for ClassicBloom {}

impl WriteBody for ClassicBloom {
    fn write_snapshot(&self, position: &[u8], out: &mut dyn Write) -> Result<(), Error> {
        let header = Header {
            family_params: FamilyParams::Classic(*self.params(), HasherParams::new(self.hasher())),
            items: self.stats().items,
            body_bytes: self.params().bytes(),
            position: position.into(),
        };
        let mut writer = SnapshotWriter::new(out, &header)?;
        for word in self.words() {
            writer.put(&word.to_le_bytes())?;
        }
        writer.finish()
    }
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
