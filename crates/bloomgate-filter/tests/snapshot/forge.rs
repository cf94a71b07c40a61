//! Forged snapshots: other contents with valid checksums.
//!
//! The offsets are those of `docs/SNAPSHOT.md`.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

pub(crate) const VERSION: usize = 8;
pub(crate) const FAMILY: usize = 10;
pub(crate) const HASH_ALGORITHM: usize = 11;
pub(crate) const HEADER_LENGTH: usize = 12;
pub(crate) const FINGERPRINT: usize = 16;
pub(crate) const PLANNED_ITEMS: usize = 40;
pub(crate) const FALSE_POSITIVE_RATE: usize = 48;
pub(crate) const SIZE: usize = 56;
pub(crate) const HASHES: usize = 64;
pub(crate) const NON_INTEGER_KEYS: usize = 68;
pub(crate) const ITEMS: usize = 72;
pub(crate) const BODY_LENGTH: usize = 80;
pub(crate) const POSITION_LENGTH: usize = 88;
pub(crate) const RESERVED: usize = 92;
pub(crate) const POSITION: usize = 96;

const TRAILER: usize = 16;

/// A copy of `snapshot` with `field` at `offset` and valid checksums.
pub(crate) fn with(snapshot: &[u8], offset: usize, field: &[u8]) -> Vec<u8> {
    let mut forged = snapshot.to_vec();
    forged[offset..offset + field.len()].copy_from_slice(field);
    seal(&mut forged);
    forged
}

/// Writes valid checksums into `snapshot`, as far as it is long enough.
pub(crate) fn seal(snapshot: &mut [u8]) {
    let (header, rest) = snapshot.split_at_mut((body(snapshot) - 8).min(snapshot.len()));
    if let Some(sum) = rest.first_chunk_mut() {
        *sum = xxh3_64(header).to_le_bytes();
    }
    if let Some((content, sum)) = snapshot.split_last_chunk_mut::<TRAILER>() {
        *sum = xxh3_128(content).to_le_bytes();
    }
}

/// The offset of the body, according to the position length in the header.
pub(crate) fn body(snapshot: &[u8]) -> usize {
    let length = snapshot.get(POSITION_LENGTH..).and_then(|rest| rest.first_chunk::<4>());
    POSITION + 8 + length.map_or(0, |&length| u32::from_le_bytes(length) as usize)
}
