//! What can go wrong when a filter is configured, stored or read back.

use std::{fmt, io};

/// Every error of this crate.
///
/// ```
/// use bloomgate_filter::{Error, FalsePositiveRate};
///
/// let error = FalsePositiveRate::new(2.0).unwrap_err();
/// assert!(matches!(error, Error::RateOutOfRange { value: 2.0 }));
/// assert!(error.to_string().starts_with("false_positive_rate is 2: give a number between"));
/// ```
///
/// Each message names the field at fault and the way to put it right. No variant carries a secret
/// or a part of one. All of them arise while filters are set up, put together, stored or read back:
/// once one exists, `insert` and `contains` cannot fail.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The false-positive rate is not a number strictly between 0 and 1.
    RateOutOfRange {
        /// The value that was given.
        value: f64,
    },
    /// The false-positive rate is legal but smaller than [`FalsePositiveRate::MIN`](crate::FalsePositiveRate::MIN).
    RateTooSmall {
        /// The value that was given.
        value: f64,
    },
    /// With this many items, equal hashes alone would use up a tenth of the rate asked for.
    HashTooNarrow {
        /// The number of items that was given.
        items: u64,
        /// The rate that was given.
        rate: f64,
    },
    /// The filter would be larger than one allocation may be on this target.
    TooLarge {
        /// The number of items that was given.
        items: u64,
        /// The rate that was given.
        rate: f64,
        /// The bytes such a filter needs.
        bytes: u128,
    },
    /// The allocator refused the memory of the filter.
    OutOfMemory {
        /// The bytes that were asked for.
        bytes: u64,
    },
    /// Two filters can't be merged: they differ in what gives their bits a meaning.
    Mismatch {
        /// What they differ in.
        field: &'static str,
    },
    /// The secret is shorter than [`Secret::MIN_BYTES`](crate::Secret::MIN_BYTES).
    SecretTooShort {
        /// The length that was given, in bytes.
        bytes: usize,
    },
    /// The secret is not an even number of hexadecimal digits.
    SecretNotHex,
    /// The environment variable that should hold the secret is unset or not UTF-8.
    SecretNotInEnvironment {
        /// The name of the variable.
        variable: String,
    },
    /// The operating system gave no random bytes for a new secret.
    NoRandomness {
        /// What the operating system said.
        reason: String,
    },
    /// The bytes are no snapshot: they don't begin with the mark of one.
    NotASnapshot,
    /// The snapshot is of a version of the format that this build doesn't know.
    SnapshotVersion {
        /// The version of the snapshot.
        version: u16,
    },
    /// The snapshot is of a family of sets that this build doesn't know.
    SnapshotFamily {
        /// The [number](crate::Family::id) of the family.
        id: u8,
    },
    /// The snapshot was made under a hash that this build doesn't know.
    SnapshotHashAlgorithm {
        /// The [number](crate::HashAlgorithm::id) of the hash.
        id: u8,
    },
    /// The checksum of the snapshot's header is wrong.
    SnapshotHeaderDamaged,
    /// The checksum of the whole snapshot is wrong.
    SnapshotDamaged,
    /// The snapshot ends too early.
    SnapshotTruncated {
        /// The bytes that it should have; as long as the header isn't complete, at least these.
        expected: u64,
        /// The bytes that there are.
        actual: u64,
    },
    /// Something follows the end of the snapshot.
    SnapshotTooLong {
        /// The bytes that it should have.
        expected: u64,
        /// The bytes that there are, at least.
        actual: u64,
    },
    /// The snapshot has valid checksums, but says something that can't be.
    SnapshotField {
        /// The field at fault, as `docs/SNAPSHOT.md` names it.
        field: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The snapshot is of a family that hashes, and was read without a secret.
    SecretMissing,
    /// The snapshot was made under another secret.
    SecretDiffers,
    /// The position for a snapshot is longer than
    /// [`MAX_POSITION_BYTES`](crate::snapshot::MAX_POSITION_BYTES).
    PositionTooLong {
        /// The length that was given, in bytes.
        bytes: usize,
    },
    /// A snapshot could not be written or read.
    Io {
        /// What was to be done with the snapshot: "open", "write" and the like.
        step: &'static str,
        /// The kind of error.
        kind: io::ErrorKind,
        /// What the operating system, or the writer or reader, said.
        reason: String,
    },
}

impl Error {
    /// The error of `step` that failed with `error`.
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
                "false_positive_rate is {value:e}: the smallest rate this filter offers is 1e-9, \
                 give that or more"
            ),
            Self::HashTooNarrow { items, rate } => write!(
                f,
                "false_positive_rate is {rate:e} for {items} items: a 64-bit hash cannot tell so \
                 many items apart that well, give a larger rate or fewer items"
            ),
            Self::TooLarge { items, rate, bytes } => write!(
                f,
                "items is {items} at a false_positive_rate of {rate:e}: the filter needs {bytes} \
                 bytes, more than one allocation may have here; give fewer items or a larger rate"
            ),
            Self::OutOfMemory { bytes } => write!(
                f,
                "items asks for a filter of {bytes} bytes, which the allocator refused: give fewer \
                 items, a larger false_positive_rate, or the process more memory"
            ),
            Self::Mismatch { field } => write!(
                f,
                "{field} differs between the two filters: give filters of the same params whose \
                 hashers have the same algorithm, secret and nonce"
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
                "secret: the operating system gave no random bytes ({reason}); give a secret of \
                 your own"
            ),
            Self::NotASnapshot => write!(
                f,
                "snapshot: these bytes are none, or were changed like a text; give the file as it \
                 was saved, or build the set anew"
            ),
            Self::SnapshotVersion { version } => write!(
                f,
                "snapshot: version is {version}, and this build knows only 1; read it with a \
                 newer build, or build the set anew"
            ),
            Self::SnapshotFamily { id } => write!(
                f,
                "snapshot: family is {id}, which this build doesn't know; read it with a newer \
                 build, or build the set anew"
            ),
            Self::SnapshotHashAlgorithm { id } => write!(
                f,
                "snapshot: hash is {id}, which this build doesn't know; read it with a newer \
                 build, or build the set anew"
            ),
            Self::SnapshotHeaderDamaged => {
                write!(f, "snapshot: the header is damaged (wrong checksum); build the set anew")
            }
            Self::SnapshotDamaged => {
                write!(f, "snapshot: the body is damaged (wrong checksum); build the set anew")
            }
            Self::SnapshotTruncated { expected, actual } => write!(
                f,
                "snapshot: length is {actual} bytes and should be {expected}: it was cut off; \
                 build the set anew"
            ),
            Self::SnapshotTooLong { expected, actual } => write!(
                f,
                "snapshot: length is {actual} bytes and should be {expected}: something was \
                 appended; build the set anew"
            ),
            Self::SnapshotField { field, reason } => {
                write!(f, "snapshot: {field} {reason}; build the set anew")
            }
            Self::SecretMissing => write!(
                f,
                "secret: a snapshot of this family can't be read without one; give the secret it \
                 was made under"
            ),
            Self::SecretDiffers => write!(
                f,
                "secret: the snapshot was made under another one; give that, or build the set anew"
            ),
            Self::PositionTooLong { bytes } => {
                write!(f, "position has {bytes} bytes: give at most 4096")
            }
            Self::Io { step, reason, .. } => write!(
                f,
                "snapshot: failed to {step} it ({reason}); give a place that exists, has room, and \
                 that this process may use"
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
            (Error::HashTooNarrow { items: 1, rate: 0.1 }, "false_positive_rate"),
            (Error::TooLarge { items: 1, rate: 0.1, bytes: 77 }, "items"),
            (Error::OutOfMemory { bytes: 77 }, "items"),
            (Error::Mismatch { field: "params" }, "params"),
            (Error::SecretTooShort { bytes: 3 }, "secret"),
            (Error::SecretNotHex, "secret"),
            (Error::SecretNotInEnvironment { variable: "V".into() }, "secret"),
            (Error::NoRandomness { reason: "none".into() }, "secret"),
            (Error::NotASnapshot, "snapshot"),
            (Error::SnapshotVersion { version: 2 }, "snapshot: version is 2"),
            (Error::SnapshotFamily { id: 9 }, "snapshot: family is 9"),
            (Error::SnapshotHashAlgorithm { id: 9 }, "snapshot: hash is 9"),
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
