//! Snapshots: sets in files and messages.
//!
//! A snapshot is one set of keys, of any family, in a versioned format with checksums that is the
//! same on every target. It can be written while other threads use the set. A service that restarts
//! loads the snapshot instead of scanning its database, and continues from the *position* that the
//! snapshot contains.
//!
//! ```
//! use bloomgate_filter::{
//!     BloomFilter, BloomParams, FalsePositiveRate, HashAlgorithm, KeyedHasher, Membership as _,
//!     Secret, snapshot,
//! };
//!
//! let secret = Secret::new(b"replace with 32 random bytes")?;
//! let hasher = KeyedHasher::new(HashAlgorithm::SipHash13, &secret, b"generation no. 1");
//! let filter = BloomFilter::new(BloomParams::new(1_000, FalsePositiveRate::new(0.01)?)?, hasher)?;
//! filter.insert(b"present");
//!
//! // Read the position before taking the snapshot: all later keys then come after it.
//! let position = b"log 7, entry 1200";
//! let mut bytes = Vec::new();
//! snapshot::write(&filter, position, &mut bytes)?;
//!
//! let loaded = snapshot::read(bytes.as_slice(), bytes.len() as u64, Some(&secret))?;
//! assert_eq!(loaded.header.position(), position);
//! assert!(loaded.set.contains(b"present"));
//! # Ok::<(), bloomgate_filter::Error>(())
//! ```
//!
//! [`save`] and [`load`] do the same with a file, which [`save`] replaces atomically.
//! [`read_header`] and [`inspect`] read the header without the secret.
//!
//! # Guarantees
//!
//! 1. Every key whose insert returned before [`write()`] was called is in the snapshot. Concurrent
//!    inserts may be in it completely, partly or not at all.
//! 2. Reading returns the set that was written, or an [`Error`]. A damaged or truncated set, or one
//!    of another secret, could report its keys as absent, and is never returned.
//! 3. Reading allocates at most the length of the snapshot and 64 KiB until the whole snapshot has
//!    been verified.
//!
//! # Security
//!
//! The checksums detect damage, not forgery: anyone who can write the file can compute valid
//! checksums. Keep snapshots where only the service can write.
//!
//! A snapshot contains neither the secret nor a key derived from it, only the
//! [fingerprint](crate::Secret::fingerprint) of the secret and the nonce. A snapshot of a Bloom
//! filter reveals how many keys it holds, not which. A snapshot of a bitmap or of an exact set
//! **contains the keys in plain text**. The position is in plain text in all families. [`save`]
//! makes files that only their owner can read.
//!
//! `docs/SNAPSHOT.md` in the repository specifies the format.

use std::io::{Read, Write};

use crate::any_set::AnySet;
use crate::error::Error;
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
use sealed::WriteBody;
use stream::{BodyReader, SnapshotReader};

/// A set that can be written as a snapshot.
///
/// Implemented by the families of this crate and by [`AnySet`]. Other crates can't implement it,
/// because the format specifies each family. Object-safe:
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
pub trait Persist: Membership + sealed::WriteBody {}

mod sealed {
    use std::io::Write;

    use crate::error::Error;

    /// Keeps [`Persist`](super::Persist) to this crate; implemented beside each family's body.
    pub trait WriteBody {
        /// Writes header and body.
        fn write_snapshot(&self, position: &[u8], out: &mut dyn Write) -> Result<(), Error>;
    }
}

impl Persist for AnySet {}

impl WriteBody for AnySet {
    fn write_snapshot(&self, position: &[u8], out: &mut dyn Write) -> Result<(), Error> {
        self.as_set().write_snapshot(position, out)
    }
}

/// A snapshot that was read: its header and its set.
///
/// ```
/// use bloomgate_filter::{AnySet, Bitmap, snapshot};
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
    /// The header, including the position.
    pub header: Header,
    /// The set, ready for lookups and inserts. Its statistics continue from the stored counts.
    pub set: AnySet,
}

/// Writes a snapshot of `set` to `out`, and flushes it.
///
/// `position` is the point in the source of keys up to which the set is complete. It is opaque to
/// this crate. Read it *before* this call: keys inserted during the call may be missing from the
/// snapshot, so they must come after the position.
///
/// Other threads can insert during the call. Uses a buffer of 32 KiB, from which `out` receives
/// large writes. A bitmap is [compacted](crate::Bitmap::compact) first. An exact set is sorted in a list
/// of 16 bytes per key.
///
/// # Errors
///
/// [`Error::PositionTooLong`] for a position of more than [`MAX_POSITION_BYTES`], and [`Error::Io`]
/// if `out` fails, which has then received an incomplete snapshot.
pub fn write<W: Write>(
    set: &(impl Persist + ?Sized),
    position: &[u8],
    mut out: W,
) -> Result<(), Error> {
    if position.len() > MAX_POSITION_BYTES {
        return Err(Error::PositionTooLong { bytes: position.len() });
    }
    set.write_snapshot(position, &mut out)
}

/// Reads a snapshot of `length` bytes from `input`, which must end after them.
///
/// `length` must come from a trusted source, such as the size of the file, slice or message,
/// because it bounds the memory that is allocated; the length in the header is only compared with
/// it. `input` needs no buffering. The Bloom filters need `secret`; the exact families ignore it.
///
/// Costs one pass over the bytes. A Bloom filter is read directly into its memory. A bitmap or an
/// exact set is built after its bytes were read and verified, so that both are in memory for a
/// short time.
///
/// # Errors
///
/// Those of [`read_header`]; [`Error::SnapshotTruncated`] and [`Error::SnapshotTooLong`] if the
/// length in the header is not `length`, or `input` ends early or late; [`Error::SnapshotDamaged`]
/// if the checksum is wrong; [`Error::SnapshotField`] for an invalid field or body;
/// [`Error::SecretMissing`] and [`Error::SecretDiffers`]; [`Error::OutOfMemory`].
pub fn read<R: Read>(input: R, length: u64, secret: Option<&Secret>) -> Result<Loaded, Error> {
    let mut reader = SnapshotReader::new(input);
    let header = Header::read(&mut reader)?;
    header.check_length(length)?;
    let body = BodyReader::new(reader, &header);
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

/// Reads the header at the start of `input`, without the secret.
///
/// The checksum of the header is verified. The rest of the snapshot is neither read nor verified.
///
/// # Errors
///
/// [`Error::NotASnapshot`], [`Error::SnapshotVersion`], [`Error::SnapshotTruncated`],
/// [`Error::SnapshotHeaderDamaged`], [`Error::SnapshotFamily`], [`Error::SnapshotHashAlgorithm`],
/// [`Error::SnapshotField`] with the invalid field, and [`Error::Io`] if `input` fails.
pub fn read_header<R: Read>(input: R) -> Result<Header, Error> {
    Header::read(&mut SnapshotReader::new(input))
}
