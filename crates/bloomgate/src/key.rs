//! The one canonical form of a key, shared by gate, caches, flights and shared slots.
//!
//! The encoding itself is [`bloomgate_filter::Key`]; this module adds the owned form that maps
//! hold, and how a key is read from text.

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

/// Longest text, in bytes, that [`ParseKey`] takes for a `String` key. Longer text isn't a key.
pub const MAX_TEXT_KEY: usize = 1024;

/// A key that can be read from one segment of a path.
///
/// One value must have one spelling, or a stranger can multiply cache entries by respelling an
/// id: `007`, `+7` and `7` are not three ways to write 7 but one id and two things that aren't.
pub trait ParseKey: Key {
    /// Reads `text` (already percent-decoded); `None` if it isn't the canonical spelling of a key.
    fn parse_key(text: &str) -> Option<Self>;
}

macro_rules! parse_integer {
    ($($int:ty),*) => {$(
        impl ParseKey for $int {
            fn parse_key(text: &str) -> Option<Self> {
                let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
                // No sign but a minus, no leading zero, no "-0".
                let canonical = match digits {
                    [b'0'] => digits.len() == text.len(),
                    [b'1'..=b'9', ..] => true,
                    _ => false,
                };
                if canonical { text.parse().ok() } else { None }
            }
        }
    )*};
}
parse_integer!(i8, i16, i32, i64, i128, u8, u16, u32, u64, u128);

/// Any text of at most [`MAX_TEXT_KEY`] bytes without a NUL, which PostgreSQL can't store.
impl ParseKey for String {
    fn parse_key(text: &str) -> Option<Self> {
        (text.len() <= MAX_TEXT_KEY && !text.contains('\0')).then(|| text.to_owned())
    }
}

/// The hyphenated form in lower case, and no other.
#[cfg(feature = "uuid")]
impl ParseKey for uuid::Uuid {
    fn parse_key(text: &str) -> Option<Self> {
        let id = uuid::Uuid::try_parse(text).ok()?;
        let mut canonical = uuid::Uuid::encode_buffer();
        (id.hyphenated().encode_lower(&mut canonical) == text).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_one_spelling() {
        for (text, value) in [("0", 0), ("7", 7), ("-1", -1), ("9223372036854775807", i64::MAX)] {
            assert_eq!(i64::parse_key(text), Some(value));
        }
        for text in [
            "",
            "-",
            "+",
            "-0",
            "00",
            "007",
            "+5",
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
        ] {
            assert_eq!(i64::parse_key(text), None, "{text:?}");
        }
        assert_eq!(u32::parse_key("-1"), None);
    }

    #[test]
    fn case_46_text_with_a_nul_or_beyond_measure_is_no_key() {
        assert_eq!(String::parse_key("a b"), Some("a b".to_owned()));
        assert_eq!(String::parse_key("a\0b"), None);
        assert!(String::parse_key(&"a".repeat(MAX_TEXT_KEY)).is_some());
        assert!(String::parse_key(&"a".repeat(MAX_TEXT_KEY + 1)).is_none());
    }

    #[cfg(feature = "uuid")]
    #[test]
    fn uuids_have_one_spelling() {
        let text = "67e55044-10b1-426f-9247-bb680e5fe0c8";
        assert!(uuid::Uuid::parse_key(text).is_some());
        for other in [
            text.to_uppercase(),
            text.replace('-', ""),
            format!("{{{text}}}"),
            format!("urn:uuid:{text}"),
            format!("{text} "),
        ] {
            assert_eq!(uuid::Uuid::parse_key(&other), None, "{other}");
        }
    }

    #[test]
    fn debug_shows_no_key() {
        let shown = format!("{:?}", KeyBytes::of(&"alice@example.org".to_owned()));
        assert_eq!(shown, "KeyBytes(17 bytes)");
    }
}
