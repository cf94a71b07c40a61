//! What a snapshot says of itself before the body.

use std::fmt;
use std::io::Read;

use xxhash_rust::xxh3::xxh3_64;

use super::stream::{Source, TRAILER};
use crate::error::Error;
use crate::hash::{Hash, KeyedHasher, Secret};
use crate::membership::Family;
use crate::sizing::{ClassicPlan, Plan, Rate};

/// The longest position that a snapshot carries, in bytes.
pub const MOST_POSITION_BYTES: usize = 4096;

/// As in PNG: a byte that is no ASCII, a name, and line ends of both kinds around the byte that ends
/// a text file in DOS. What passes a snapshot through as text changes one of them.
const MAGIC: [u8; 8] = *b"\x89BGS\r\n\x1a\n";

/// The version of the format that is written and read.
const VERSION: u16 = 1;

/// Bytes of the header before the position.
const FIXED: usize = 96;

/// Bytes of the header's checksum, after the position.
const CHECKSUM: usize = 8;

/// Bytes of the shortest snapshot there can be.
const LEAST: u64 = (FIXED + CHECKSUM) as u64 + TRAILER;

/// More inserts than there can have been: at a thousand million a second they take 292 years. Below
/// it counts can go on without an overflow.
const TOO_MANY_ITEMS: u64 = 1 << 63;

/// What a snapshot says of itself.
///
/// ```
/// use bloomgate_filter::{ClassicBloom, ClassicPlan, Family, Hash, KeyedHasher, Rate, Secret};
/// use bloomgate_filter::snapshot;
///
/// let hasher = KeyedHasher::new(Hash::Xxh3, &Secret::generate()?, &[7; 16]);
/// let plan = ClassicPlan::new(10_000, Rate::new(0.001)?)?;
/// let mut bytes = Vec::new();
/// snapshot::write(&ClassicBloom::new(plan, hasher)?, b"", &mut bytes)?;
///
/// let header = snapshot::read_header(bytes.as_slice())?;
/// assert_eq!((header.family(), header.hash()), (Family::Classic, Some(Hash::Xxh3)));
/// assert_eq!((header.planned_items(), header.items()), (Some(10_000), 0));
/// assert_eq!(header.total_bytes(), bytes.len() as u64);
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Header {
    pub(super) shape: Shape,
    pub(super) items: u64,
    pub(super) body_bytes: u64,
    pub(super) position: Box<[u8]>,
}

/// What kind of set the body holds, with all that is needed to make sense of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Bloom(Plan, HashedBy),
    Classic(ClassicPlan, HashedBy),
}

/// What a hasher is made of, but for the secret.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HashedBy {
    hash: Hash,
    secret_fingerprint: [u8; 8],
    nonce: [u8; 16],
}

impl Header {
    /// The version of the format, 1.
    pub fn version(&self) -> u16 {
        VERSION
    }

    /// The kind of set.
    pub fn family(&self) -> Family {
        match self.shape {
            Shape::Bloom(..) => Family::Bloom,
            Shape::Classic(..) => Family::Classic,
        }
    }

    /// The hash that places keys; `None` for the exact families, which hold the keys themselves.
    pub fn hash(&self) -> Option<Hash> {
        self.hashed_by().map(|hashed_by| hashed_by.hash)
    }

    /// The [fingerprint](Secret::fingerprint) of the secret that is needed to read the set; `None`
    /// for the exact families.
    pub fn secret_fingerprint(&self) -> Option<[u8; 8]> {
        self.hashed_by().map(|hashed_by| hashed_by.secret_fingerprint)
    }

    /// The nonce of the generation; `None` for the exact families.
    pub fn nonce(&self) -> Option<[u8; 16]> {
        self.hashed_by().map(|hashed_by| hashed_by.nonce)
    }

    /// The number of items that the set was planned for; `None` for the exact families, which grow.
    pub fn planned_items(&self) -> Option<u64> {
        match &self.shape {
            Shape::Bloom(plan, _) => Some(plan.items()),
            Shape::Classic(plan, _) => Some(plan.items()),
        }
    }

    /// The false-positive rate that the set was planned for; `None` for the exact families.
    pub fn rate(&self) -> Option<Rate> {
        match &self.shape {
            Shape::Bloom(plan, _) => Some(plan.rate()),
            Shape::Classic(plan, _) => Some(plan.rate()),
        }
    }

    /// Inserts that had been counted when the snapshot was begun.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The position of the source that [`write`](super::write()) was given, up to 4,096 bytes.
    pub fn position(&self) -> &[u8] {
        &self.position
    }

    /// Bytes of the body, which holds the set.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Bytes of the whole snapshot.
    pub fn total_bytes(&self) -> u64 {
        // Neither is a number from elsewhere that could overflow: see `parse`.
        self.header_bytes() as u64 + self.body_bytes + TRAILER
    }

    /// What `length` bytes are too few or too many for this header.
    pub(super) fn check_length(&self, length: u64) -> Result<(), Error> {
        let expected = self.total_bytes();
        match length {
            less if less < expected => Err(Error::SnapshotTruncated { expected, actual: less }),
            more if more > expected => Err(Error::SnapshotTooLong { expected, actual: more }),
            _ => Ok(()),
        }
    }

    fn header_bytes(&self) -> usize {
        FIXED + self.position.len() + CHECKSUM
    }

    fn hashed_by(&self) -> Option<&HashedBy> {
        match &self.shape {
            Shape::Bloom(_, hashed_by) | Shape::Classic(_, hashed_by) => Some(hashed_by),
        }
    }

    /// The header in the form that begins a snapshot.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let (size, hashes) = match &self.shape {
            Shape::Bloom(plan, _) => (plan.blocks(), plan.hashes()),
            Shape::Classic(plan, _) => (plan.bits(), plan.hashes()),
        };
        let mut bytes = Vec::with_capacity(self.header_bytes());
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.push(self.family().id());
        bytes.push(self.hash().map_or(0, Hash::id));
        bytes.extend((self.header_bytes() as u32).to_le_bytes());
        bytes.extend(self.secret_fingerprint().unwrap_or_default());
        bytes.extend(self.nonce().unwrap_or_default());
        bytes.extend(self.planned_items().unwrap_or(0).to_le_bytes());
        bytes.extend(self.rate().map_or(0.0, Rate::get).to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(hashes.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.items.min(TOO_MANY_ITEMS - 1).to_le_bytes());
        bytes.extend(self.body_bytes.to_le_bytes());
        bytes.extend((self.position.len() as u32).to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(&self.position);
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    /// Reads and checks a header.
    pub(super) fn read<R: Read>(source: &mut Source<R>) -> Result<Self, Error> {
        let mut fixed = [0; FIXED];
        let (magic, rest) = fixed.split_at_mut(MAGIC.len());
        let begun = source.fill_up_to(magic)?;
        if magic[..begun] != MAGIC[..begun] {
            return Err(Error::NotASnapshot);
        }
        // Fails if the magic was cut off too: then nothing follows.
        source.fill(rest, LEAST)?;

        // Other versions may put everything else elsewhere, so this is asked first.
        let version = u16::from_le_bytes(field(&fixed, 8));
        if version != VERSION {
            return Err(Error::SnapshotVersion { version });
        }
        let position_bytes = u32::from_le_bytes(field(&fixed, 88));
        let mut position = [0; MOST_POSITION_BYTES];
        let Some(position) = position.get_mut(..position_bytes as usize) else {
            return invalid("position length", "is more than 4096");
        };
        source.fill(position, LEAST + u64::from(position_bytes))?;
        let sum = source.sum_64();
        let mut checksum = [0; CHECKSUM];
        source.fill(&mut checksum, LEAST + u64::from(position_bytes))?;
        if u64::from_le_bytes(checksum) != sum {
            return Err(Error::SnapshotHeaderDamaged);
        }
        Self::parse(&fixed, position)
    }

    /// The header of fields that are as they were written, or were forged.
    fn parse(fixed: &[u8; FIXED], position: &[u8]) -> Result<Self, Error> {
        let [family] = field(fixed, 10);
        let family = Family::from_id(family).ok_or(Error::SnapshotFamily { id: family })?;
        let header_bytes = u32::from_le_bytes(field(fixed, 12)) as usize;
        let items = u64::from_le_bytes(field(fixed, 72));
        let body_bytes = u64::from_le_bytes(field(fixed, 80));

        if header_bytes != FIXED + position.len() + CHECKSUM {
            return invalid("header length", "is not that of the header");
        }
        if field(fixed, 68) != [0; 4] || field(fixed, 92) != [0; 4] {
            return invalid("reserved bytes", "are not zero");
        }
        if items >= TOO_MANY_ITEMS {
            return invalid("items", "are more than can ever have been inserted");
        }
        let shape = match family {
            Family::Bloom => Shape::bloom(fixed)?,
            Family::Classic => Shape::classic(fixed)?,
            Family::Bitmap | Family::Exact => {
                return Err(Error::SnapshotFamily { id: family.id() });
            }
        };
        if !shape.fits(body_bytes) {
            return invalid("body length", "is not that of a set of this size");
        }
        Ok(Self { shape, items, body_bytes, position: position.into() })
    }
}

impl Shape {
    fn bloom(fixed: &[u8; FIXED]) -> Result<Self, Error> {
        let hashed_by = HashedBy::parse(fixed)?;
        let (items, rate, blocks, hashes) = plan_fields(fixed)?;
        let Some(plan) = Plan::stored(items, rate, blocks) else {
            return invalid("size", "is no number of blocks, or more than fit into memory");
        };
        if hashes != plan.hashes() {
            return invalid("hashes", "are not the 8 of this family");
        }
        Ok(Self::Bloom(plan, hashed_by))
    }

    fn classic(fixed: &[u8; FIXED]) -> Result<Self, Error> {
        let hashed_by = HashedBy::parse(fixed)?;
        let (items, rate, bits, hashes) = plan_fields(fixed)?;
        match ClassicPlan::stored(items, rate, bits, hashes) {
            Some(plan) => Ok(Self::Classic(plan, hashed_by)),
            None => invalid("size or hashes", "is zero, or too much for the other or for memory"),
        }
    }

    /// Whether a body of this many bytes can hold the set.
    fn fits(&self, body_bytes: u64) -> bool {
        match self {
            Self::Bloom(plan, _) => body_bytes == plan.bytes(),
            Self::Classic(plan, _) => body_bytes == plan.bytes(),
        }
    }
}

impl HashedBy {
    pub(super) fn new(hasher: &KeyedHasher) -> Self {
        Self {
            hash: hasher.algorithm(),
            secret_fingerprint: hasher.secret_fingerprint(),
            nonce: hasher.nonce(),
        }
    }

    fn parse(fixed: &[u8; FIXED]) -> Result<Self, Error> {
        let [hash] = field(fixed, 11);
        let hash = Hash::from_id(hash).ok_or(Error::SnapshotHash { id: hash })?;
        Ok(Self { hash, secret_fingerprint: field(fixed, 16), nonce: field(fixed, 24) })
    }

    /// The hasher, if `secret` is the one it was made of.
    pub(super) fn hasher(&self, secret: Option<&Secret>) -> Result<KeyedHasher, Error> {
        let secret = secret.ok_or(Error::SecretMissing)?;
        if secret.fingerprint() != self.secret_fingerprint {
            return Err(Error::SecretDiffers);
        }
        Ok(KeyedHasher::new(self.hash, secret, &self.nonce))
    }
}

/// Planned items, rate, size and hashes.
fn plan_fields(fixed: &[u8; FIXED]) -> Result<(u64, Rate, u64, u32), Error> {
    let items = u64::from_le_bytes(field(fixed, 40));
    let Ok(rate) = Rate::new(f64::from_le_bytes(field(fixed, 48))) else {
        return invalid("rate", "is not a number between 1e-9 and 1");
    };
    let size = u64::from_le_bytes(field(fixed, 56));
    Ok((items, rate, size, u32::from_le_bytes(field(fixed, 64))))
}

/// The `N` bytes at `offset`.
fn field<const N: usize>(fixed: &[u8; FIXED], offset: usize) -> [u8; N] {
    std::array::from_fn(|at| fixed[offset + at])
}

fn invalid<T>(field: &'static str, reason: &'static str) -> Result<T, Error> {
    Err(Error::SnapshotField { field, reason })
}

impl fmt::Debug for Header {
    /// All but the position, which may name a key that the source had come to.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header")
            .field("shape", &self.shape)
            .field("items", &self.items)
            .field("body_bytes", &self.body_bytes)
            .field("position_bytes", &self.position.len())
            .finish()
    }
}
