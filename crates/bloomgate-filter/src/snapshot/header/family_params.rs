//! The family of a snapshot, with the parameters required to read its body.

use super::{FIXED_BYTES, at, field, invalid};
use crate::error::Error;
use crate::hash::{HashAlgorithm, KeyedHasher, Secret};
use crate::membership::Family;
use crate::sizing::{BloomParams, ClassicParams, FalsePositiveRate};
use crate::snapshot::{bitmap_body, exact_body};

/// The parameters of a set, by family.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::snapshot) enum FamilyParams {
    Bloom(BloomParams, HasherParams),
    Classic(ClassicParams, HasherParams),
    Bitmap { chunks: u64, non_integer_keys: bool },
    Exact { keys: u64 },
}

/// The parameters of a hasher, without the secret.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::snapshot) struct HasherParams {
    pub(super) algorithm: HashAlgorithm,
    pub(super) secret_fingerprint: [u8; 8],
    pub(super) nonce: [u8; 16],
}

impl FamilyParams {
    pub(super) fn family(&self) -> Family {
        match self {
            Self::Bloom(..) => Family::Bloom,
            Self::Classic(..) => Family::Classic,
            Self::Bitmap { .. } => Family::Bitmap,
            Self::Exact { .. } => Family::Exact,
        }
    }

    pub(super) fn hasher_params(&self) -> Option<&HasherParams> {
        match self {
            Self::Bloom(_, hasher_params) | Self::Classic(_, hasher_params) => Some(hasher_params),
            Self::Bitmap { .. } | Self::Exact { .. } => None,
        }
    }

    /// The items and the false-positive rate that the filter was sized for.
    pub(super) fn planned(&self) -> Option<(u64, FalsePositiveRate)> {
        match self {
            Self::Bloom(params, _) => Some((params.items(), params.false_positive_rate())),
            Self::Classic(params, _) => Some((params.items(), params.false_positive_rate())),
            Self::Bitmap { .. } | Self::Exact { .. } => None,
        }
    }

    /// The number of blocks, bits, chunks or keys.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Bloom(params, _) => params.blocks(),
            Self::Classic(params, _) => params.bits(),
            Self::Bitmap { chunks, .. } => *chunks,
            Self::Exact { keys } => *keys,
        }
    }

    /// Bits that a key sets.
    pub(super) fn hashes(&self) -> u32 {
        match self {
            Self::Bloom(params, _) => params.hashes(),
            Self::Classic(params, _) => params.hashes(),
            Self::Bitmap { .. } | Self::Exact { .. } => 0,
        }
    }

    pub(super) fn has_non_integer_keys(&self) -> bool {
        matches!(self, Self::Bitmap { non_integer_keys: true, .. })
    }

    /// Whether a body of this many bytes, at most `isize::MAX`, can hold the set.
    pub(super) fn fits(&self, body_bytes: u64) -> bool {
        let min = match self {
            Self::Bloom(params, _) => return body_bytes == params.bytes(),
            Self::Classic(params, _) => return body_bytes == params.bytes(),
            Self::Bitmap { chunks, .. } => chunks.saturating_mul(bitmap_body::MIN_BYTES),
            Self::Exact { keys } => keys.saturating_mul(exact_body::MIN_BYTES),
        };
        (min..=isize::MAX as u64).contains(&body_bytes)
    }

    /// Parses the fields of a header.
    pub(super) fn parse(fixed: &[u8; FIXED_BYTES]) -> Result<Self, Error> {
        let [id] = field(fixed, at::FAMILY);
        let family = Family::from_id(id).ok_or(Error::SnapshotFamily { id })?;
        let size = u64::from_le_bytes(field(fixed, at::SIZE));
        let non_integer_keys = match (fixed[at::NON_INTEGER_KEYS], family) {
            (0, _) => false,
            (1, Family::Bitmap) => true,
            _ => return invalid("non-integer keys", "are neither 0 nor, in a bitmap, 1"),
        };
        match family {
            Family::Bloom => {
                let (hasher_params, items, rate, hashes) = hashing_fields(fixed)?;
                let Some(params) = BloomParams::stored(items, rate, size) else {
                    return invalid("size", "is zero, or more blocks than memory can hold");
                };
                if hashes != params.hashes() {
                    return invalid("hashes", "are not 8, as in this family");
                }
                Ok(Self::Bloom(params, hasher_params))
            }
            Family::Classic => {
                let (hasher_params, items, rate, hashes) = hashing_fields(fixed)?;
                match ClassicParams::stored(items, rate, size, hashes) {
                    Some(params) => Ok(Self::Classic(params, hasher_params)),
                    None => invalid("size or hashes", "is zero, or more than a filter can have"),
                }
            }
            Family::Bitmap => {
                refuse_hashing_fields(fixed)?;
                Ok(Self::Bitmap { chunks: size, non_integer_keys })
            }
            Family::Exact => {
                refuse_hashing_fields(fixed)?;
                Ok(Self::Exact { keys: size })
            }
        }
    }
}

impl HasherParams {
    pub(in crate::snapshot) fn new(hasher: &KeyedHasher) -> Self {
        Self {
            algorithm: hasher.algorithm(),
            secret_fingerprint: hasher.secret_fingerprint(),
            nonce: hasher.nonce(),
        }
    }

    /// The hasher, if `secret` has the stored fingerprint.
    pub(in crate::snapshot) fn hasher(
        &self,
        secret: Option<&Secret>,
    ) -> Result<KeyedHasher, Error> {
        let secret = secret.ok_or(Error::SecretMissing)?;
        if secret.fingerprint() != self.secret_fingerprint {
            return Err(Error::SecretDiffers);
        }
        Ok(KeyedHasher::new(self.algorithm, secret, &self.nonce))
    }
}

/// The fields of the Bloom filters only: hasher, planned items, false-positive rate and hashes.
fn hashing_fields(
    fixed: &[u8; FIXED_BYTES],
) -> Result<(HasherParams, u64, FalsePositiveRate, u32), Error> {
    let [id] = field(fixed, at::HASH_ALGORITHM);
    let algorithm = HashAlgorithm::from_id(id).ok_or(Error::SnapshotHashAlgorithm { id })?;
    let secret_fingerprint = field(fixed, at::SECRET_FINGERPRINT);
    let hasher_params =
        HasherParams { algorithm, secret_fingerprint, nonce: field(fixed, at::NONCE) };
    let items = u64::from_le_bytes(field(fixed, at::PLANNED_ITEMS));
    let Ok(rate) =
        FalsePositiveRate::new(f64::from_le_bytes(field(fixed, at::FALSE_POSITIVE_RATE)))
    else {
        return invalid("false-positive rate", "is not a number between 1e-9 and 1");
    };
    Ok((hasher_params, items, rate, u32::from_le_bytes(field(fixed, at::HASHES))))
}

/// Checks that the fields of the Bloom filters are zero, for the other families.
fn refuse_hashing_fields(fixed: &[u8; FIXED_BYTES]) -> Result<(), Error> {
    let fields = [
        at::HASH_ALGORITHM..at::HEADER_LENGTH,
        at::SECRET_FINGERPRINT..at::SIZE,
        at::HASHES..at::NON_INTEGER_KEYS,
    ];
    if fields.into_iter().any(|field| fixed[field].iter().any(|&byte| byte != 0)) {
        return invalid(
            "hash algorithm, secret or parameters",
            "is given, but this family has none",
        );
    }
    Ok(())
}
