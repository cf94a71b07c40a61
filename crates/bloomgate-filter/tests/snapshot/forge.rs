//! What somebody can do to a snapshot who knows its format: other contents, valid checksums.
//!
//! The offsets are those of `docs/SNAPSHOT.md`.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

pub(crate) const VERSION: usize = 8;
pub(crate) const FAMILY: usize = 10;
pub(crate) const HASH: usize = 11;
pub(crate) const HEADER_LENGTH: usize = 12;
pub(crate) const FINGERPRINT: usize = 16;
pub(crate) const PLANNED_ITEMS: usize = 40;
pub(crate) const RATE: usize = 48;
pub(crate) const SIZE: usize = 56;
pub(crate) const HASHES: usize = 64;
pub(crate) const NON_INTEGER_KEYS: usize = 68;
pub(crate) const ITEMS: usize = 72;
pub(crate) const BODY_LENGTH: usize = 80;
pub(crate) const POSITION_LENGTH: usize = 88;
pub(crate) const RESERVED: usize = 92;
pub(crate) const POSITION: usize = 96;

const TRAILER: usize = 16;

/// A copy of `snapshot` with `field` at `offset`, and checksums to match.
pub(crate) fn with(snapshot: &[u8], offset: usize, field: &[u8]) -> Vec<u8> {
    let mut forged = snapshot.to_vec();
    forged[offset..offset + field.len()].copy_from_slice(field);
    seal(&mut forged);
    forged
}

/// Puts in the checksums that the bytes should have, as far as there is room for them.
pub(crate) fn seal(snapshot: &mut [u8]) {
    let (header, rest) = snapshot.split_at_mut((body(snapshot) - 8).min(snapshot.len()));
    if let Some(sum) = rest.first_chunk_mut() {
        *sum = xxh3_64(header).to_le_bytes();
    }
    if let Some((content, sum)) = snapshot.split_last_chunk_mut::<TRAILER>() {
        *sum = xxh3_128(content).to_le_bytes();
    }
}

/// Where the body begins, by the length that the position is said to have.
pub(crate) fn body(snapshot: &[u8]) -> usize {
    let length = snapshot.get(POSITION_LENGTH..).and_then(|rest| rest.first_chunk::<4>());
    POSITION + 8 + length.map_or(0, |&length| u32::from_le_bytes(length) as usize)
}
