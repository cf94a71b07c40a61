//! Sets in files: written while they are in use, read back as they were.
//!
//! A snapshot is one set of keys, of any family, in a versioned and checksummed form that is the
//! same on every target. A service that restarts loads the snapshot instead of scanning its
//! database, and catches up from the *position* that the snapshot carries.
//!
//! ```
//! use bloomgate_filter::{BloomFilter, HashAlgorithm, KeyedHasher, BloomParams, FalsePositiveRate, Secret, snapshot};
//!
//! let secret = Secret::generate()?;
//! let hasher = KeyedHasher::new(HashAlgorithm::SipHash13, &secret, b"generation no. 1");
//! let filter = BloomFilter::new(BloomParams::new(1_000, FalsePositiveRate::new(0.01)?)?, hasher)?;
//! filter.insert(b"present");
//!
//! // The position is read before the snapshot is taken: what comes later is then behind it.
//! let position = b"log 7, entry 1200";
//! let mut bytes = Vec::new();
//! snapshot::write(&filter, position, &mut bytes)?;
//!
//! let loaded = snapshot::read(bytes.as_slice(), bytes.len() as u64, Some(&secret))?;
//! assert_eq!(loaded.header.position(), position);
//! assert!(loaded.set.into_membership().contains(b"present"));
//! # Ok::<(), bloomgate_filter::Error>(())
//! ```
//!
//! [`save`] and [`load`] do the same with a file, which [`save`] replaces as a whole or not at all.
//! [`read_header`] and [`inspect`] tell what a snapshot is of without the secret.
//!
//! # What is promised
//!
//! - Every key whose insert had returned before [`write()`] was called is in the snapshot. Inserts
//!   that run meanwhile may be in it, or partly, or not.
//! - What is read is what was written, or there is an [`Error`]. A set that was damaged, cut off or
//!   made under another secret would deny keys that it holds: none is ever handed out.
//! - Reading allocates no more than the snapshot has bytes, and 64 KiB, until all of it has been
//!   checked.
//!
//! The checksums find damage. They don't find forgery: whoever can write a file can give it valid
//! checksums. Keep snapshots where only the service can write.
//!
//! # What a snapshot tells to whoever reads it
//!
//! Never the secret, nor anything that keys can be hashed with: only the
//! [fingerprint](crate::Secret::fingerprint) of the secret and the nonce. A snapshot of a Bloom
//! filter then tells how many keys it has, not which. One of a bitmap or of an exact set **holds
//! the keys themselves in clear**, and the position is in clear in all of them. [`save`] makes files
//! that only their owner can read.
//!
//! The bytes are specified in `docs/SNAPSHOT.md` of the repository.

use std::io::{Read, Write};
use std::sync::Arc;

use crate::bitmap::Bitmap;
use crate::bloom::BloomFilter;
use crate::classic::ClassicBloom;
use crate::error::Error;
use crate::exact::ExactSet;
use crate::hash::Secret;
use crate::membership::Membership;

mod bitmap_body;
mod bloom_body;
mod exact_body;
mod file;
mod header;
mod stream;
#[cfg(test)]
mod tests;

pub use file::{inspect, load, save};
use header::FamilyParams;
pub use header::{Header, MAX_POSITION_BYTES};
use sealed::Set;
use stream::{BodyReader, SnapshotReader};

/// A set that can be written as a snapshot.
///
/// Implemented by the families of this crate and by [`AnySet`]; no other crate can implement it,
/// because the form of a set is part of the format. Object-safe:
///
/// ```
/// use bloomgate_filter::snapshot::{self, Persist};
/// use bloomgate_filter::{Bitmap, ExactSet};
///
/// let sets: [Box<dyn Persist>; 2] = [Box::new(Bitmap::new()), Box::new(ExactSet::new())];
/// for set in &sets {
///     snapshot::write(set.as_ref(), b"", std::io::sink())?;
/// }
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
pub trait Persist: sealed::AsSet {}

mod sealed {
    use super::{Bitmap, BloomFilter, ClassicBloom, ExactSet};

    /// Keeps [`Persist`](super::Persist) to this crate.
    pub trait AsSet {
        fn as_set(&self) -> Set<'_>;
    }

    /// The set behind a [`Persist`](super::Persist).
    #[derive(Debug)]
    pub enum Set<'a> {
        Bloom(&'a BloomFilter),
        Classic(&'a ClassicBloom),
        Bitmap(&'a Bitmap),
        Exact(&'a ExactSet),
    }
}

macro_rules! persist {
    ($($variant:ident: $family:ty),+) => {$(
        impl Persist for $family {}

        impl sealed::AsSet for $family {
            fn as_set(&self) -> Set<'_> {
                Set::$variant(self)
            }
        }
    )+};
}

persist!(Bloom: BloomFilter, Classic: ClassicBloom, Bitmap: Bitmap, Exact: ExactSet);

/// A set of whichever family a snapshot was of.
///
/// ```
/// use bloomgate_filter::snapshot::AnySet;
/// use bloomgate_filter::{ClassicBloom, ClassicParams, HashAlgorithm, KeyedHasher, FalsePositiveRate, Secret};
///
/// let hasher = KeyedHasher::new(HashAlgorithm::Xxh3, &Secret::generate()?, &[7; 16]);
/// let params = ClassicParams::new(10_000, FalsePositiveRate::new(0.001)?)?;
/// let set = AnySet::Classic(ClassicBloom::new(params, hasher)?).into_membership();
/// assert!(!set.contains(b"absent"));
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum AnySet {
    /// A cache-line-blocked Bloom filter.
    Bloom(BloomFilter),
    /// A textbook Bloom filter.
    Classic(ClassicBloom),
    /// An exact set of integers.
    Bitmap(Bitmap),
    /// An exact set of keys of any kind.
    Exact(ExactSet),
}

impl AnySet {
    /// The set, to be asked and added to without regard to its family.
    pub fn into_membership(self) -> Arc<dyn Membership> {
        match self {
            Self::Bloom(set) => Arc::new(set),
            Self::Classic(set) => Arc::new(set),
            Self::Bitmap(set) => Arc::new(set),
            Self::Exact(set) => Arc::new(set),
        }
    }
}

impl Persist for AnySet {}

impl sealed::AsSet for AnySet {
    fn as_set(&self) -> Set<'_> {
        match self {
            Self::Bloom(set) => Set::Bloom(set),
            Self::Classic(set) => Set::Classic(set),
            Self::Bitmap(set) => Set::Bitmap(set),
            Self::Exact(set) => Set::Exact(set),
        }
    }
}

/// What came out of a snapshot.
///
/// ```
/// use bloomgate_filter::snapshot::{self, AnySet};
/// use bloomgate_filter::Bitmap;
///
/// let ids = Bitmap::new();
/// ids.insert_id(42);
/// let mut bytes = Vec::new();
/// snapshot::write(&ids, b"", &mut bytes)?;
///
/// // Bitmaps and exact sets need no secret.
/// let loaded = snapshot::read(bytes.as_slice(), bytes.len() as u64, None)?;
/// assert!(matches!(&loaded.set, AnySet::Bitmap(ids) if ids.contains_id(42)));
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// What the snapshot says of itself, the position of its source included.
    pub header: Header,
    /// The set, ready for look-ups and further inserts; counts go on from where they were.
    pub set: AnySet,
}

/// Writes a snapshot of `set` to `out`, and flushes it.
///
/// `position` says up to where the set has followed its source. It is handed back as it is; this
/// crate does not look into it. Read it *before* this call: what enters the set while it is being
/// written may be missing from the snapshot, so it has to lie behind the position.
///
/// Others can go on inserting. Memory is constant: a buffer of 32 KiB, from which `out` gets its
/// bytes in large pieces. A bitmap is [compacted](Bitmap::compact) first. An exact set is sorted in
/// a list of 16 bytes a key.
///
/// # Errors
///
/// [`Error::PositionTooLong`] for a position of more than [`MAX_POSITION_BYTES`], and
/// [`Error::Io`] if `out` fails. What `out` has received by then is no snapshot.
pub fn write<W: Write>(
    set: &(impl Persist + ?Sized),
    position: &[u8],
    out: W,
) -> Result<(), Error> {
    if position.len() > MAX_POSITION_BYTES {
        return Err(Error::PositionTooLong { bytes: position.len() });
    }
    match set.as_set() {
        Set::Bloom(filter) => bloom_body::write_bloom(filter, position, out),
        Set::Classic(filter) => bloom_body::write_classic(filter, position, out),
        Set::Bitmap(bitmap) => bitmap_body::write(bitmap, position, out),
        Set::Exact(set) => exact_body::write(set, position, out),
    }
}

/// Reads a snapshot of `length` bytes from `input`, which must end after them.
///
/// The length has to come from whoever holds the bytes (the size of the file, of the slice, of the
/// message), because memory is allocated by it; what the snapshot says of its own length is only
/// compared with it. `input` needs no buffering. `secret` is needed for the families that hash, and
/// not looked at for the others.
///
/// Costs one pass over the bytes, which become the filter, for the families that hash. Bitmaps and
/// exact sets are made from the bytes once these were read and checked, so that both are in memory
/// for a moment.
///
/// # Errors
///
/// All that [`read_header`] has; [`Error::SnapshotTruncated`] and [`Error::SnapshotTooLong`] for
/// another length than the header tells, and for an `input` that ends early or late;
/// [`Error::SnapshotDamaged`] if the checksum is wrong; [`Error::SnapshotField`] for contents that no
/// set can have; [`Error::SecretMissing`] and [`Error::SecretDiffers`]; [`Error::OutOfMemory`].
pub fn read<R: Read>(input: R, length: u64, secret: Option<&Secret>) -> Result<Loaded, Error> {
    let mut source = SnapshotReader::new(input);
    let header = Header::read(&mut source)?;
    header.check_length(length)?;
    let body = BodyReader::new(source, &header);
    let items = header.items();
    let set = match &header.family_params {
        FamilyParams::Bloom(params, hasher_params) => {
            let hasher = hasher_params.hasher(secret)?;
            AnySet::Bloom(bloom_body::read_bloom(*params, hasher, items, body)?)
        }
        FamilyParams::Classic(params, hasher_params) => {
            let hasher = hasher_params.hasher(secret)?;
            AnySet::Classic(bloom_body::read_classic(*params, hasher, items, body)?)
        }
        FamilyParams::Bitmap { chunks, non_integer_keys } => {
            AnySet::Bitmap(bitmap_body::read(*chunks, *non_integer_keys, items, body)?)
        }
        FamilyParams::Exact { keys } => AnySet::Exact(exact_body::read(*keys, items, body)?),
    };
    Ok(Loaded { header, set })
}

/// Reads the header at the beginning of `input`, without the secret.
///
/// The header has a checksum of its own, which is verified. What follows is neither read nor
/// vouched for.
///
/// # Errors
///
/// [`Error::NotASnapshot`], [`Error::SnapshotVersion`], [`Error::SnapshotTruncated`],
/// [`Error::SnapshotHeaderDamaged`], [`Error::SnapshotFamily`], [`Error::SnapshotHashAlgorithm`],
/// [`Error::SnapshotField`] with the field that no set can have, and [`Error::Io`] if `input` fails.
pub fn read_header<R: Read>(input: R) -> Result<Header, Error> {
    Header::read(&mut SnapshotReader::new(input))
}
