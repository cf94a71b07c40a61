//! The canonical form of a key, shared by gate, caches, flights and shared slots.
//!
//! The encoding itself is [`bloomgate_filter::Key`]; this module adds the owned form that maps
//! hold, and the reading of keys from text.

use std::fmt;
use std::sync::Arc;

pub use bloomgate_filter::Key;

/// The canonical bytes of a key, owned and cheap to clone.
///
/// Its `Debug` prints the length alone: keys come from strangers and don't belong in logs.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeyBytes(Arc<[u8]>);

impl KeyBytes {
    /// Encodes `key`; one allocation.
    #[must_use]
    pub fn of<K: Key>(key: &K) -> Self {
        key.with_bytes(|bytes| Self(Arc::from(bytes)))
    }

    /// The key whose canonical bytes these are.
    pub(crate) fn from_canonical(bytes: &[u8]) -> Self {
        Self(Arc::from(bytes))
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for KeyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyBytes({} bytes)", self.0.len())
    }
}

/// The longest text, in bytes, that is read as a text key. Longer text is malformed.
pub const MAX_TEXT_KEY: usize = 1024;

/// A key that can be read from a path parameter.
///
/// A guard's layer must read the same key as the route's handler, from the same text, or a stranger
/// walks around the gate by spelling an id in another way. So [`parse_key`](Self::parse_key) accepts
/// what axum's `Path<Self>` accepts, and folds all spellings of a key into the one key: `7`, `007`
/// and `+7` are the integer 7, and a UUID may be in upper case, without hyphens, in braces or a URN.
/// Key spaces that admit one spelling only use [`CanonicalText`].
///
/// A key type of one's own needs one method. Where the handler takes `Path<OrderId>` with serde's
/// derive on the newtype, it is the inner type's:
///
/// ```
/// use std::borrow::Cow;
///
/// use bloomgate::{Key, ParseKey};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
/// struct OrderId(i64);
///
/// impl Key for OrderId {
///     fn kind() -> Cow<'static, str> {
///         i64::kind()
///     }
///
///     fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
///         self.0.with_bytes(f)
///     }
/// }
///
/// impl ParseKey for OrderId {
///     fn parse_key(text: &str) -> Option<Self> {
///         i64::parse_key(text).map(Self)
///     }
/// }
///
/// assert_eq!(OrderId::parse_key("007"), Some(OrderId(7)));
/// ```
pub trait ParseKey: Key {
    /// Reads `text`, which is percent-decoded already; `None` if it is malformed.
    fn parse_key(text: &str) -> Option<Self>;
}

/// A key of which one spelling is the canonical one.
///
/// `path_param("id").strict()` reads keys of these types, and takes every other spelling for
/// malformed.
///
/// ```
/// use bloomgate::key::{CanonicalText as _, ParseKey as _};
///
/// assert_eq!(i64::parse_key("007"), Some(7));
/// assert_eq!(i64::parse_canonical("007"), None);
/// assert_eq!(i64::parse_canonical("7"), Some(7));
/// ```
pub trait CanonicalText: ParseKey {
    /// True if `text`, from which this key was read, is its canonical spelling.
    fn is_canonical(&self, text: &str) -> bool;

    /// Reads `text` if it is the canonical spelling of a key.
    fn parse_canonical(text: &str) -> Option<Self> {
        Self::parse_key(text).filter(|key| key.is_canonical(text))
    }
}

macro_rules! integer_keys {
    ($($int:ty),*) => {$(
        impl ParseKey for $int {
            #[inline]
            fn parse_key(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }

        /// Decimal digits without leading zeros, after a minus for a negative number.
        impl CanonicalText for $int {
            fn is_canonical(&self, text: &str) -> bool {
                match text.strip_prefix('-').unwrap_or(text).as_bytes() {
                    [b'0'] => text.len() == 1,
                    [b'1'..=b'9', ..] => true,
                    _ => false,
                }
            }
        }
    )*};
}
integer_keys!(i8, i16, i32, i64, i128, u8, u16, u32, u64, u128);

macro_rules! text_keys {
    ($($text:ty),*) => {$(
        /// Any text of at most [`MAX_TEXT_KEY`] bytes without a NUL, which PostgreSQL can't store.
        impl ParseKey for $text {
            fn parse_key(text: &str) -> Option<Self> {
                (text.len() <= MAX_TEXT_KEY && !text.contains('\0')).then(|| text.into())
            }
        }

        /// A text has one spelling.
        impl CanonicalText for $text {
            fn is_canonical(&self, text: &str) -> bool {
                **self == *text
            }
        }
    )*};
}
text_keys!(String, Box<str>, Arc<str>);

/// Every form that `uuid` reads: hyphenated, simple, braced, URN, each in either case.
#[cfg(feature = "uuid")]
impl ParseKey for uuid::Uuid {
    fn parse_key(text: &str) -> Option<Self> {
        Self::try_parse(text).ok()
    }
}

/// The hyphenated form in lower case.
#[cfg(feature = "uuid")]
impl CanonicalText for uuid::Uuid {
    fn is_canonical(&self, text: &str) -> bool {
        *self.hyphenated().encode_lower(&mut Self::encode_buffer()) == *text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spellings of integers that are not the canonical ones, with what they mean.
    const OTHER_SPELLINGS: [(&str, i64); 6] =
        [("-0", 0), ("+0", 0), ("00", 0), ("007", 7), ("+5", 5), ("-01", -1)];

    const MALFORMED: [&str; 14] = [
        "",
        "-",
        "+",
        " 1",
        "1 ",
        "1.0",
        "1e3",
        "0x1",
        "１",
        "abc",
        "1abc",
        "99999999999999999999",
        "9223372036854775808",
        "--1",
    ];

    #[test]
    fn every_spelling_of_an_integer_is_read_as_that_integer() {
        for (text, value) in [("0", 0), ("7", 7), ("-1", -1), ("9223372036854775807", i64::MAX)] {
            assert_eq!(i64::parse_key(text), Some(value));
            assert_eq!(i64::parse_canonical(text), Some(value));
        }
        for (text, value) in OTHER_SPELLINGS {
            assert_eq!(i64::parse_key(text), Some(value), "{text:?}");
        }
        for text in MALFORMED {
            assert_eq!(i64::parse_key(text), None, "{text:?}");
        }
        assert_eq!(u32::parse_key("-1"), None);
    }

    #[test]
    fn integers_have_one_canonical_spelling() {
        for (text, _) in OTHER_SPELLINGS {
            assert_eq!(i64::parse_canonical(text), None, "{text:?}");
        }
        for text in MALFORMED {
            assert_eq!(i64::parse_canonical(text), None, "{text:?}");
        }
    }

    #[test]
    fn case_46_text_with_a_nul_or_beyond_measure_is_no_key() {
        assert_eq!(String::parse_key("a b"), Some("a b".to_owned()));
        assert_eq!(String::parse_canonical("a b"), Some("a b".to_owned()));
        assert_eq!(String::parse_key("a\0b"), None);
        assert!(String::parse_key(&"a".repeat(MAX_TEXT_KEY)).is_some());
        assert!(String::parse_key(&"a".repeat(MAX_TEXT_KEY + 1)).is_none());
    }

    #[cfg(feature = "uuid")]
    #[test]
    fn every_spelling_of_a_uuid_is_read_as_that_uuid_and_one_is_canonical() {
        let text = "67e55044-10b1-426f-9247-bb680e5fe0c8";
        let id = uuid::Uuid::parse_key(text);
        assert!(id.is_some());
        assert_eq!(uuid::Uuid::parse_canonical(text), id);
        for other in [
            text.to_uppercase(),
            text.replace('-', ""),
            format!("{{{text}}}"),
            format!("urn:uuid:{text}"),
            format!("URN:UUID:{text}"),
        ] {
            assert_eq!(uuid::Uuid::parse_key(&other), id, "{other}");
            assert_eq!(uuid::Uuid::parse_canonical(&other), None, "{other}");
        }
        for malformed in ["", "67e55044", &format!("{text} "), &text.replace('-', "_")] {
            assert_eq!(uuid::Uuid::parse_key(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn debug_shows_no_key() {
        let shown = format!("{:?}", KeyBytes::of(&"alice@example.org".to_owned()));
        assert_eq!(shown, "KeyBytes(17 bytes)");
    }
}
