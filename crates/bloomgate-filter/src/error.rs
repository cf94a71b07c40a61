//! What can go wrong when a filter is configured.

use std::fmt;

/// Every error of this crate.
///
/// ```
/// use bloomgate_filter::{Error, Rate};
///
/// let error = Rate::new(2.0).unwrap_err();
/// assert!(matches!(error, Error::RateOutOfRange { value: 2.0 }));
/// assert!(error.to_string().starts_with("false_positive_rate is 2: give a number between"));
/// ```
///
/// Each message names the field at fault and the way to put it right. No variant carries a secret
/// or a part of one. All of them arise while filters are set up or put together: once one
/// exists, `insert` and `contains` cannot fail.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The false-positive rate is not a number strictly between 0 and 1.
    RateOutOfRange {
        /// The value that was given.
        value: f64,
    },
    /// The false-positive rate is legal but smaller than [`Rate::MIN`](crate::Rate::MIN).
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
                "{field} differs between the two filters: give filters of the same plan whose \
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
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_names_its_field_and_a_fix() {
        let cases = [
            (Error::RateOutOfRange { value: f64::NAN }, "false_positive_rate"),
            (Error::RateTooSmall { value: 5e-324 }, "false_positive_rate"),
            (Error::HashTooNarrow { items: 1, rate: 0.1 }, "false_positive_rate"),
            (Error::TooLarge { items: 1, rate: 0.1, bytes: 77 }, "items"),
            (Error::OutOfMemory { bytes: 77 }, "items"),
            (Error::Mismatch { field: "plan" }, "plan"),
            (Error::SecretTooShort { bytes: 3 }, "secret"),
            (Error::SecretNotHex, "secret"),
            (Error::SecretNotInEnvironment { variable: "V".into() }, "secret"),
            (Error::NoRandomness { reason: "none".into() }, "secret"),
        ];
        for (error, field) in cases {
            let text = error.to_string();
            assert!(text.starts_with(field), "{text}");
            assert!(text.contains("give") || text.contains("set"), "{text}");
        }
        assert!(Error::OutOfMemory { bytes: 77 }.to_string().contains("77 bytes"));
    }
}
