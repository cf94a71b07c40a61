//! What kind of set a snapshot is of, with all that is needed to make sense of the body.

use super::{FIXED, at, field, invalid};
use crate::error::Error;
use crate::hash::{HashAlgorithm, KeyedHasher, Secret};
use crate::membership::Family;
use crate::sizing::{BloomParams, ClassicParams, FalsePositiveRate};
use crate::snapshot::{chunks, keys};

/// A set without its keys.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::snapshot) enum Shape {
    Bloom(BloomParams, HashedBy),
    Classic(ClassicParams, HashedBy),
    Bitmap { chunks: u64, foreign_keys: bool },
    Exact { keys: u64 },
}

/// What a hasher is made of, but for the secret.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::snapshot) struct HashedBy {
    pub(super) hash: HashAlgorithm,
    pub(super) secret_fingerprint: [u8; 8],
    pub(super) nonce: [u8; 16],
}

impl Shape {
    pub(super) fn family(&self) -> Family {
        match self {
            Self::Bloom(..) => Family::Bloom,
            Self::Classic(..) => Family::Classic,
            Self::Bitmap { .. } => Family::Bitmap,
            Self::Exact { .. } => Family::Exact,
        }
    }

    pub(super) fn hashed_by(&self) -> Option<&HashedBy> {
        match self {
            Self::Bloom(_, hashed_by) | Self::Classic(_, hashed_by) => Some(hashed_by),
            Self::Bitmap { .. } | Self::Exact { .. } => None,
        }
    }

    /// The items that were planned for, and the rate.
    pub(super) fn planned(&self) -> Option<(u64, FalsePositiveRate)> {
        match self {
            Self::Bloom(plan, _) => Some((plan.items(), plan.rate())),
            Self::Classic(plan, _) => Some((plan.items(), plan.rate())),
            Self::Bitmap { .. } | Self::Exact { .. } => None,
        }
    }

    /// Blocks, bits, chunks or keys.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Bloom(plan, _) => plan.blocks(),
            Self::Classic(plan, _) => plan.bits(),
            Self::Bitmap { chunks, .. } => *chunks,
            Self::Exact { keys } => *keys,
        }
    }

    /// Bits that a key sets.
    pub(super) fn hashes(&self) -> u32 {
        match self {
            Self::Bloom(plan, _) => plan.hashes(),
            Self::Classic(plan, _) => plan.hashes(),
            Self::Bitmap { .. } | Self::Exact { .. } => 0,
        }
    }

    pub(super) fn has_foreign_keys(&self) -> bool {
        matches!(self, Self::Bitmap { foreign_keys: true, .. })
    }

    /// Whether a body of this many bytes can hold the set. It is then no longer than `isize::MAX`.
    pub(super) fn fits(&self, body_bytes: u64) -> bool {
        let least = match self {
            Self::Bloom(plan, _) => return body_bytes == plan.bytes(),
            Self::Classic(plan, _) => return body_bytes == plan.bytes(),
            Self::Bitmap { chunks, .. } => chunks.saturating_mul(chunks::MIN_BYTES),
            Self::Exact { keys } => keys.saturating_mul(keys::MIN_BYTES),
        };
        (least..=isize::MAX as u64).contains(&body_bytes)
    }

    /// The shape that the fields of a header tell.
    pub(super) fn parse(fixed: &[u8; FIXED]) -> Result<Self, Error> {
        let [id] = field(fixed, at::FAMILY);
        let family = Family::from_id(id).ok_or(Error::SnapshotFamily { id })?;
        let size = u64::from_le_bytes(field(fixed, at::SIZE));
        let foreign_keys = match (fixed[at::FOREIGN_KEYS], family) {
            (0, _) => false,
            (1, Family::Bitmap) => true,
            _ => return invalid("foreign keys", "are neither 0 nor, in a bitmap, 1"),
        };
        match family {
            Family::Bloom => {
                let (hashed_by, items, rate, hashes) = hashing_fields(fixed)?;
                let Some(plan) = BloomParams::stored(items, rate, size) else {
                    return invalid("size", "is no number of blocks, or more than memory can have");
                };
                if hashes != plan.hashes() {
                    return invalid("hashes", "are not the 8 of this family");
                }
                Ok(Self::Bloom(plan, hashed_by))
            }
            Family::Classic => {
                let (hashed_by, items, rate, hashes) = hashing_fields(fixed)?;
                match ClassicParams::stored(items, rate, size, hashes) {
                    Some(plan) => Ok(Self::Classic(plan, hashed_by)),
                    None => invalid("size or hashes", "is zero, or more than a filter can have"),
                }
            }
            Family::Bitmap => {
                refuse_hashing_fields(fixed)?;
                Ok(Self::Bitmap { chunks: size, foreign_keys })
            }
            Family::Exact => {
                refuse_hashing_fields(fixed)?;
                Ok(Self::Exact { keys: size })
            }
        }
    }
}

impl HashedBy {
    pub(in crate::snapshot) fn new(hasher: &KeyedHasher) -> Self {
        Self {
            hash: hasher.algorithm(),
            secret_fingerprint: hasher.secret_fingerprint(),
            nonce: hasher.nonce(),
        }
    }

    /// The hasher, if `secret` is the one it was made of.
    pub(in crate::snapshot) fn hasher(
        &self,
        secret: Option<&Secret>,
    ) -> Result<KeyedHasher, Error> {
        let secret = secret.ok_or(Error::SecretMissing)?;
        if secret.fingerprint() != self.secret_fingerprint {
            return Err(Error::SecretDiffers);
        }
        Ok(KeyedHasher::new(self.hash, secret, &self.nonce))
    }
}

/// What only the families that hash have: hasher, planned items, rate and hashes.
fn hashing_fields(fixed: &[u8; FIXED]) -> Result<(HashedBy, u64, FalsePositiveRate, u32), Error> {
    let [id] = field(fixed, at::HASH);
    let hash = HashAlgorithm::from_id(id).ok_or(Error::SnapshotHash { id })?;
    let secret_fingerprint = field(fixed, at::SECRET_FINGERPRINT);
    let hashed_by = HashedBy { hash, secret_fingerprint, nonce: field(fixed, at::NONCE) };
    let items = u64::from_le_bytes(field(fixed, at::PLANNED_ITEMS));
    let Ok(rate) = FalsePositiveRate::new(f64::from_le_bytes(field(fixed, at::RATE))) else {
        return invalid("rate", "is not a number between 1e-9 and 1");
    };
    Ok((hashed_by, items, rate, u32::from_le_bytes(field(fixed, at::HASHES))))
}

/// For the other families these fields are zero.
fn refuse_hashing_fields(fixed: &[u8; FIXED]) -> Result<(), Error> {
    let fields = [
        at::HASH..at::HEADER_LENGTH,
        at::SECRET_FINGERPRINT..at::SIZE,
        at::HASHES..at::FOREIGN_KEYS,
    ];
    if fields.into_iter().any(|field| fixed[field].iter().any(|&byte| byte != 0)) {
        return invalid("hash, secret or plan", "is given, but this family has none");
    }
    Ok(())
}
