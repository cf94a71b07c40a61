//! The header of a snapshot.

use std::fmt;
use std::io::Read;

use xxhash_rust::xxh3::xxh3_64;

use super::stream::{SnapshotReader, TRAILER_BYTES};
use crate::error::Error;
use crate::hash::HashAlgorithm;
use crate::membership::Family;
use crate::sizing::FalsePositiveRate;

mod family_params;

pub(super) use family_params::{FamilyParams, HasherParams};

/// The maximum length of a position, in bytes.
pub const MAX_POSITION_BYTES: usize = 4096;

/// As in PNG: a non-ASCII byte, a name, and line ends of both kinds around the end-of-file byte of
/// DOS. A text conversion changes at least one of them.
const MAGIC: [u8; 8] = *b"\x89BGS\r\n\x1a\n";

/// The supported format version.
const VERSION: u16 = 1;

/// Bytes of the header before the position.
const FIXED_BYTES: usize = 96;

/// Bytes of the header checksum, after the position.
const CHECKSUM_BYTES: usize = 8;

/// Bytes of the shortest possible snapshot.
const MIN_SNAPSHOT_BYTES: u64 = (FIXED_BYTES + CHECKSUM_BYTES) as u64 + TRAILER_BYTES;

/// The limit of the item count: at 10^9 inserts per second it takes 292 years to reach. Counts
/// below it can grow without an overflow.
const ITEMS_LIMIT: u64 = 1 << 63;

/// Offsets of the header fields.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 8;
    pub(super) const FAMILY: usize = 10;
    pub(super) const HASH_ALGORITHM: usize = 11;
    pub(super) const HEADER_LENGTH: usize = 12;
    pub(super) const SECRET_FINGERPRINT: usize = 16;
    pub(super) const NONCE: usize = 24;
    pub(super) const PLANNED_ITEMS: usize = 40;
    pub(super) const FALSE_POSITIVE_RATE: usize = 48;
    pub(super) const SIZE: usize = 56;
    pub(super) const HASHES: usize = 64;
    pub(super) const NON_INTEGER_KEYS: usize = 68;
    pub(super) const RESERVED_3: usize = 69;
    pub(super) const ITEMS: usize = 72;
    pub(super) const BODY_LENGTH: usize = 80;
    pub(super) const POSITION_LENGTH: usize = 88;
    pub(super) const RESERVED_4: usize = 92;
}

/// The header of a snapshot: family, parameters, counts and position.
///
/// ```
/// use bloomgate_filter::{
///     ClassicBloom, ClassicParams, FalsePositiveRate, Family, HashAlgorithm, KeyedHasher, Secret,
/// };
/// use bloomgate_filter::snapshot;
///
/// let secret = Secret::new(b"replace with 32 random bytes")?;
/// let hasher = KeyedHasher::new(HashAlgorithm::Xxh3, &secret, &[7; 16]);
/// let params = ClassicParams::new(10_000, FalsePositiveRate::new(0.001)?)?;
/// let mut bytes = Vec::new();
/// snapshot::write(&ClassicBloom::new(params, hasher)?, b"", &mut bytes)?;
///
/// let header = snapshot::read_header(bytes.as_slice())?;
/// assert_eq!(header.family(), Family::Classic);
/// assert_eq!(header.hash_algorithm(), Some(HashAlgorithm::Xxh3));
/// assert_eq!((header.planned_items(), header.items()), (Some(10_000), 0));
/// assert_eq!(header.total_bytes(), bytes.len() as u64);
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Header {
    pub(super) family_params: FamilyParams,
    pub(super) items: u64,
    pub(super) body_bytes: u64,
    pub(super) position: Box<[u8]>,
}

impl Header {
    /// The version of the format, 1.
    pub fn version(&self) -> u16 {
        VERSION
    }

    /// The family of the set.
    pub fn family(&self) -> Family {
        self.family_params.family()
    }

    /// The hash algorithm; `None` for the exact families, which store the keys themselves.
    pub fn hash_algorithm(&self) -> Option<HashAlgorithm> {
        self.family_params.hasher_params().map(|hasher_params| hasher_params.algorithm)
    }

    /// The [fingerprint](crate::Secret::fingerprint) of the secret required to read the set; `None`
    /// for the exact families.
    pub fn secret_fingerprint(&self) -> Option<[u8; 8]> {
        self.family_params.hasher_params().map(|hasher_params| hasher_params.secret_fingerprint)
    }

    /// The nonce of the generation; `None` for the exact families.
    pub fn nonce(&self) -> Option<[u8; 16]> {
        self.family_params.hasher_params().map(|hasher_params| hasher_params.nonce)
    }

    /// The number of items that the filter was sized for; `None` for the exact families, which
    /// grow.
    pub fn planned_items(&self) -> Option<u64> {
        self.family_params.planned().map(|(items, _)| items)
    }

    /// The false-positive rate that the filter was sized for; `None` for the exact families.
    pub fn false_positive_rate(&self) -> Option<FalsePositiveRate> {
        self.family_params.planned().map(|(_, rate)| rate)
    }

    /// The number of inserts when the snapshot was started.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The position given to [`write`](super::write()), up to 4,096 bytes.
    pub fn position(&self) -> &[u8] {
        &self.position
    }

    /// The length of the body, which holds the set, in bytes.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// The length of the whole snapshot, in bytes.
    pub fn total_bytes(&self) -> u64 {
        // Can't overflow: a body of more than `isize::MAX` bytes is refused.
        self.header_bytes() as u64 + self.body_bytes + TRAILER_BYTES
    }

    /// Checks that `length` is [`total_bytes`](Header::total_bytes).
    pub(super) fn check_length(&self, length: u64) -> Result<(), Error> {
        let expected = self.total_bytes();
        match length {
            less if less < expected => Err(Error::SnapshotTruncated { expected, actual: less }),
            more if more > expected => Err(Error::SnapshotTooLong { expected, actual: more }),
            _ => Ok(()),
        }
    }

    fn header_bytes(&self) -> usize {
        FIXED_BYTES + self.position.len() + CHECKSUM_BYTES
    }

    /// The stored form of the header.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut fixed = [0; FIXED_BYTES];
        let mut put = |at: usize, field: &[u8]| fixed[at..at + field.len()].copy_from_slice(field);
        put(at::MAGIC, &MAGIC);
        put(at::VERSION, &VERSION.to_le_bytes());
        put(at::FAMILY, &[self.family().id()]);
        put(at::HEADER_LENGTH, &(self.header_bytes() as u32).to_le_bytes());
        if let Some(hasher_params) = self.family_params.hasher_params() {
            put(at::HASH_ALGORITHM, &[hasher_params.algorithm.id()]);
            put(at::SECRET_FINGERPRINT, &hasher_params.secret_fingerprint);
            put(at::NONCE, &hasher_params.nonce);
        }
        if let Some((items, rate)) = self.family_params.planned() {
            put(at::PLANNED_ITEMS, &items.to_le_bytes());
            put(at::FALSE_POSITIVE_RATE, &rate.get().to_le_bytes());
        }
        put(at::SIZE, &self.family_params.size().to_le_bytes());
        put(at::HASHES, &self.family_params.hashes().to_le_bytes());
        put(at::NON_INTEGER_KEYS, &[u8::from(self.family_params.has_non_integer_keys())]);
        put(at::ITEMS, &self.items.min(ITEMS_LIMIT - 1).to_le_bytes());
        put(at::BODY_LENGTH, &self.body_bytes.to_le_bytes());
        put(at::POSITION_LENGTH, &(self.position.len() as u32).to_le_bytes());

        let mut bytes = [&fixed, &*self.position].concat();
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    /// Reads and validates a header.
    pub(super) fn read<R: Read>(reader: &mut SnapshotReader<R>) -> Result<Self, Error> {
        let mut fixed = [0; FIXED_BYTES];
        let (magic, rest) = fixed.split_at_mut(MAGIC.len());
        let begun = reader.fill_up_to(magic)?;
        if magic[..begun] != MAGIC[..begun] {
            return Err(Error::NotASnapshot);
        }
        // Also fails if the magic is truncated, because then nothing follows.
        reader.fill(rest, MIN_SNAPSHOT_BYTES)?;

        // Checked first: other versions may have another layout.
        let version = u16::from_le_bytes(field(&fixed, at::VERSION));
        if version != VERSION {
            return Err(Error::SnapshotVersion { version });
        }
        let position_bytes = u32::from_le_bytes(field(&fixed, at::POSITION_LENGTH));
        let mut position = [0; MAX_POSITION_BYTES];
        let Some(position) = position.get_mut(..position_bytes as usize) else {
            return invalid("position length", "is more than 4096");
        };
        reader.fill(position, MIN_SNAPSHOT_BYTES + u64::from(position_bytes))?;
        let sum = reader.checksum_64();
        let mut checksum = [0; CHECKSUM_BYTES];
        reader.fill(&mut checksum, MIN_SNAPSHOT_BYTES + u64::from(position_bytes))?;
        if u64::from_le_bytes(checksum) != sum {
            return Err(Error::SnapshotHeaderDamaged);
        }
        Self::parse(&fixed, position)
    }

    /// Parses fields whose checksum is valid; they can still be forged.
    fn parse(fixed: &[u8; FIXED_BYTES], position: &[u8]) -> Result<Self, Error> {
        let header_bytes = u32::from_le_bytes(field(fixed, at::HEADER_LENGTH)) as usize;
        let items = u64::from_le_bytes(field(fixed, at::ITEMS));
        let body_bytes = u64::from_le_bytes(field(fixed, at::BODY_LENGTH));

        let family_params = FamilyParams::parse(fixed)?;
        if header_bytes != FIXED_BYTES + position.len() + CHECKSUM_BYTES {
            return invalid("header length", "is not the length of the header");
        }
        if field(fixed, at::RESERVED_3) != [0; 3] || field(fixed, at::RESERVED_4) != [0; 4] {
            return invalid("reserved bytes", "are not zero");
        }
        if items >= ITEMS_LIMIT {
            return invalid("items", "are not below 2^63");
        }
        if !family_params.fits(body_bytes) {
            return invalid("body length", "does not match the size");
        }
        Ok(Self { family_params, items, body_bytes, position: position.into() })
    }
}

/// The `N` bytes at `offset`.
fn field<const N: usize>(fixed: &[u8; FIXED_BYTES], offset: usize) -> [u8; N] {
    std::array::from_fn(|at| fixed[offset + at])
}

pub(super) fn invalid<T>(field: &'static str, reason: &'static str) -> Result<T, Error> {
    Err(Error::SnapshotField { field, reason })
}

impl fmt::Debug for Header {
    /// Omits the position, which may contain a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header")
            .field("params", &self.family_params)
            .field("items", &self.items)
            .field("body_bytes", &self.body_bytes)
            .field("position_bytes", &self.position.len())
            .finish()
    }
}
