//! The error type of the crate.

use std::{fmt, io};

/// An error of a constructor, of a merge or of a snapshot.
///
/// ```
/// use bloomgate_filter::{Error, FalsePositiveRate};
///
/// let error = FalsePositiveRate::new(2.0).unwrap_err();
/// assert!(matches!(error, Error::RateOutOfRange { value: 2.0 }));
/// assert!(error.to_string().starts_with("false_positive_rate is 2: give a number between"));
/// ```
///
/// Each message names the invalid field and how to correct it. No variant contains a secret or a
/// part of one. Errors occur only when sets are configured, merged, stored or loaded: `insert` and
/// `contains` can't fail.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The false-positive rate is not a number strictly between 0 and 1.
    RateOutOfRange {
        /// The value that was given.
        value: f64,
    },
    /// The false-positive rate is smaller than
    /// [`FalsePositiveRate::MIN`](crate::FalsePositiveRate::MIN).
    RateTooSmall {
        /// The value that was given.
        value: f64,
    },
    /// With this many items, collisions of 64-bit hashes would contribute more than a tenth of the
    /// false-positive rate.
    HashTooNarrow {
        /// The number of items that was given.
        items: u64,
        /// The false-positive rate that was given.
        false_positive_rate: f64,
    },
    /// The filter exceeds the size limit of one allocation on this target.
    TooLarge {
        /// The number of items that was given.
        items: u64,
        /// The false-positive rate that was given.
        false_positive_rate: f64,
        /// The bytes that the filter needs.
        bytes: u128,
    },
    /// The allocator refused the memory of the filter.
    OutOfMemory {
        /// The bytes that were requested.
        bytes: u64,
    },
    /// Two filters can't be merged, because they differ in their parameters or hashers.
    Mismatch {
        /// The difference: `params` or `hasher`.
        field: &'static str,
    },
    /// The secret is shorter than [`Secret::MIN_BYTES`](crate::Secret::MIN_BYTES).
    SecretTooShort {
        /// The length that was given, in bytes.
        bytes: usize,
    },
    /// The secret is not an even number of hexadecimal digits.
    SecretNotHex,
    /// The environment variable of the secret is unset or not UTF-8.
    SecretNotInEnvironment {
        /// The name of the variable.
        variable: String,
    },
    /// The operating system failed to provide random bytes for a new secret.
    NoRandomness {
        /// The error message of the operating system.
        reason: String,
    },
    /// The bytes are not a snapshot: they don't begin with its magic number.
    NotASnapshot,
    /// The snapshot has a format version that this build doesn't support.
    SnapshotVersion {
        /// The version of the snapshot.
        version: u16,
    },
    /// The snapshot has a family that this build doesn't support.
    SnapshotFamily {
        /// The [number](crate::Family::id) of the family.
        id: u8,
    },
    /// The snapshot has a hash algorithm that this build doesn't support.
    SnapshotHashAlgorithm {
        /// The [number](crate::HashAlgorithm::id) of the algorithm.
        id: u8,
    },
    /// The checksum of the snapshot's header is wrong.
    SnapshotHeaderDamaged,
    /// The checksum of the whole snapshot is wrong.
    SnapshotDamaged,
    /// The snapshot ends too early.
    SnapshotTruncated {
        /// Its full length in bytes; a lower bound if the header is truncated.
        expected: u64,
        /// Its actual length in bytes.
        actual: u64,
    },
    /// Something follows the end of the snapshot.
    SnapshotTooLong {
        /// Its full length in bytes.
        expected: u64,
        /// The actual length in bytes, or a lower bound.
        actual: u64,
    },
    /// The checksums of the snapshot are valid, but one of its fields is not.
    SnapshotField {
        /// The invalid field, as `docs/SNAPSHOT.md` names it.
        field: &'static str,
        /// Why it is invalid.
        reason: &'static str,
    },
    /// The family of the snapshot hashes keys, and no secret was given.
    SecretMissing,
    /// The snapshot was made with another secret.
    SecretDiffers,
    /// The position for a snapshot is longer than
    /// [`MAX_POSITION_BYTES`](crate::snapshot::MAX_POSITION_BYTES).
    PositionTooLong {
        /// The length that was given, in bytes.
        bytes: usize,
    },
    /// A snapshot could not be written or read.
    Io {
        /// The operation that failed, such as "open" or "write".
        step: &'static str,
        /// The kind of error.
        kind: io::ErrorKind,
        /// The message of the underlying error.
        reason: String,
    },
}

impl Error {
    /// The error of the operation `step`, which failed with `error`.
    pub(crate) fn io(step: &'static str, error: &io::Error) -> Self {
        Self::Io { step, kind: error.kind(), reason: error.to_string() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateOutOfRange { value } => write!(
                f,
                "false_positive_rate is {value}: give a number between 0 and 1, both excluded, \
                 such as 0.001 for one in a thousand"
            ),
            Self::RateTooSmall { value } => write!(
                f,
                "false_positive_rate is {value:e}: give at least 1e-9, the smallest supported rate"
            ),
            Self::HashTooNarrow { items, false_positive_rate } => write!(
                f,
                "false_positive_rate is {false_positive_rate:e} for {items} items: 64-bit hashes \
                 collide too often for that; give a larger false_positive_rate or fewer items"
            ),
            Self::TooLarge { items, false_positive_rate, bytes } => write!(
                f,
                "items is {items} at a false_positive_rate of {false_positive_rate:e}: the filter \
                 needs {bytes} bytes, more than one allocation can have on this target; give fewer \
                 items or a larger false_positive_rate"
            ),
            Self::OutOfMemory { bytes } => write!(
                f,
                "items: the allocator refused the {bytes} bytes of the filter; give fewer items, a \
                 larger false_positive_rate, or the process more memory"
            ),
            Self::Mismatch { field } => write!(
                f,
                "{field}: the two filters have different ones; give filters with equal parameters, \
                 and hashers with the same algorithm, secret and nonce"
            ),
            Self::SecretTooShort { bytes } => write!(
                f,
                "secret has {bytes} bytes: give at least 16 random bytes (32 hexadecimal digits), \
                 for instance from `openssl rand -hex 32`"
            ),
            Self::SecretNotHex => write!(
                f,
                "secret is not hexadecimal: give an even number of digits 0-9 and a-f, for \
                 instance from `openssl rand -hex 32`"
            ),
            Self::SecretNotInEnvironment { variable } => write!(
                f,
                "secret: the environment variable {variable} is unset or not UTF-8; set it to the \
                 output of `openssl rand -hex 32`, the same on every instance"
            ),
            Self::NoRandomness { reason } => write!(
                f,
                "secret: the operating system provided no random bytes ({reason}); give a secret \
                 explicitly"
            ),
            Self::NotASnapshot => write!(
                f,
                "snapshot: the bytes are not a snapshot, or a text conversion changed them; give the \
                 file as it was saved, or rebuild the set"
            ),
            Self::SnapshotVersion { version } => write!(
                f,
                "snapshot: version is {version}, and this build supports only 1; read it with a \
                 newer build, or rebuild the set"
            ),
            Self::SnapshotFamily { id } => write!(
                f,
                "snapshot: family is {id}, which this build doesn't support; read it with a newer \
                 build, or rebuild the set"
            ),
            Self::SnapshotHashAlgorithm { id } => write!(
                f,
                "snapshot: hash algorithm is {id}, which this build doesn't support; read it with a \
                 newer build, or rebuild the set"
            ),
            Self::SnapshotHeaderDamaged => {
                write!(f, "snapshot: the header is damaged (wrong checksum); rebuild the set")
            }
            Self::SnapshotDamaged => {
                write!(f, "snapshot: the body is damaged (wrong checksum); rebuild the set")
            }
            Self::SnapshotTruncated { expected, actual } => write!(
                f,
                "snapshot: length is {actual} bytes, expected {expected}: it is truncated; rebuild \
                 the set"
            ),
            Self::SnapshotTooLong { expected, actual } => write!(
                f,
                "snapshot: length is {actual} bytes, expected {expected}: it has trailing bytes; \
                 rebuild the set"
            ),
            Self::SnapshotField { field, reason } => {
                write!(f, "snapshot: {field} {reason}; rebuild the set")
            }
            Self::SecretMissing => write!(
                f,
                "secret: a snapshot of this family can't be read without one; give the secret that \
                 it was made with"
            ),
            Self::SecretDiffers => write!(
                f,
                "secret: the snapshot was made with another one; give that, or rebuild the set"
            ),
            Self::PositionTooLong { bytes } => {
                write!(f, "position has {bytes} bytes: give at most 4096")
            }
            Self::Io { step, reason, .. } => write!(
                f,
                "snapshot: failed to {step} it ({reason}); give a path that exists, has free space, \
                 and that this process has permission to use"
            ),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_message_names_its_field_and_a_fix() {
        let cases = [
            (Error::RateOutOfRange { value: f64::NAN }, "false_positive_rate"),
            (Error::RateTooSmall { value: 5e-324 }, "false_positive_rate"),
            (Error::HashTooNarrow { items: 1, false_positive_rate: 0.1 }, "false_positive_rate"),
            (Error::TooLarge { items: 1, false_positive_rate: 0.1, bytes: 77 }, "items"),
            (Error::OutOfMemory { bytes: 77 }, "items"),
            (Error::Mismatch { field: "params" }, "params"),
            (Error::SecretTooShort { bytes: 3 }, "secret"),
            (Error::SecretNotHex, "secret"),
            (Error::SecretNotInEnvironment { variable: "V".into() }, "secret"),
            (Error::NoRandomness { reason: "none".into() }, "secret"),
            (Error::NotASnapshot, "snapshot"),
            (Error::SnapshotVersion { version: 2 }, "snapshot: version is 2"),
            (Error::SnapshotFamily { id: 9 }, "snapshot: family is 9"),
            (Error::SnapshotHashAlgorithm { id: 9 }, "snapshot: hash algorithm is 9"),
            (Error::SnapshotHeaderDamaged, "snapshot: the header"),
            (Error::SnapshotDamaged, "snapshot: the body"),
            (Error::SnapshotTruncated { expected: 9, actual: 8 }, "snapshot: length is 8"),
            (Error::SnapshotTooLong { expected: 8, actual: 9 }, "snapshot: length is 9"),
            (Error::SnapshotField { field: "rate", reason: "is odd" }, "snapshot: rate is odd"),
            (Error::SecretMissing, "secret"),
            (Error::SecretDiffers, "secret"),
            (Error::PositionTooLong { bytes: 9_999 }, "position has 9999"),
            (Error::io("open", &io::ErrorKind::NotFound.into()), "snapshot: failed to open"),
        ];
        for (error, field) in cases {
            let text = error.to_string();
            assert!(text.starts_with(field), "{text}");
            assert!(["give", "set", "build"].iter().any(|fix| text.contains(fix)), "{text}");
        }
        assert!(Error::OutOfMemory { bytes: 77 }.to_string().contains("77 bytes"));
    }
}
