//! The canonical byte encoding of keys.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

mod scratch;
#[cfg(test)]
mod tests;

use scratch::Scratch;

/// A key that has one canonical encoding.
///
/// The encoding is *injective* within a type (different keys have different bytes) and never
/// changes: it is the same for every processor, word size, compiler and release, because filters
/// built on it are stored and exchanged. All modules use these bytes to identify a key.
///
/// | type | bytes | [`kind`](Key::kind) |
/// |---|---|---|
/// | `i8` … `i64`, `u8` … `u64` | 8 bytes, little-endian, sign- or zero-extended | `int` |
/// | `i128`, `u128` | 16 bytes, little-endian | `int128` |
/// | `uuid::Uuid` (feature `uuid`) | its 16 bytes, in printed order | `uuid` |
/// | `String`, `Box<str>`, `Arc<str>` | UTF-8 | `text` |
/// | `Vec<u8>`, `Box<[u8]>`, `Arc<[u8]>`, `[u8; N]` | unchanged | `bytes` |
/// | tuples of 2 to 4 keys | for each part its length in LEB128, then its bytes | `(int,text)` … |
///
/// An integer has the same bytes in every width up to 64 bits, so that a service which reads an id
/// as `u32` agrees with one that reads it as `i64`. Keys of different *types* can have the same
/// bytes (`-1_i64` and `u64::MAX` do): use one type per key space, or at least one signedness.
///
/// `usize` and `isize` don't implement the trait, because their width depends on the target, and
/// builds for different targets exchange data. Use `u64`, or the type of the database column.
///
/// Keys are not normalised. Where the database treats two spellings as equal (a case-insensitive
/// collation, `007` and `7`), the caller must map them to one canonical key.
///
/// ```
/// use bloomgate_filter::Key;
///
/// assert_eq!(7_u8.with_bytes(<[u8]>::to_vec), 7_i64.with_bytes(<[u8]>::to_vec));
/// assert_eq!(<(i64, String)>::kind(), "(int,text)");
/// ```
pub trait Key: Clone + Eq + fmt::Debug + Send + Sync + 'static {
    /// The name of the encoding, as in the table above.
    ///
    /// Builds with the same kind encode equal keys equally.
    fn kind() -> Cow<'static, str>;

    /// Calls `f` with the canonical bytes and returns its result.
    ///
    /// Doesn't allocate for numbers, strings and byte strings. A tuple is encoded on the stack if
    /// its encoding has at most 128 bytes, lengths included; a longer one allocates once or a few
    /// times.
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R;
}

macro_rules! int_keys {
    ($kind:literal, $wide:ty: $($int:ty),+) => {$(
        impl Key for $int {
            fn kind() -> Cow<'static, str> {
                Cow::Borrowed($kind)
            }

            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                f(&<$wide>::from(*self).to_le_bytes())
            }
        }
    )+};
}

int_keys!("int", i64: i8, i16, i32, i64);
int_keys!("int", u64: u8, u16, u32, u64);
int_keys!("int128", i128: i128);
int_keys!("int128", u128: u128);

macro_rules! borrowed_keys {
    ($kind:literal, $as_bytes:ident: $($owned:ty),+) => {$(
        impl Key for $owned {
            fn kind() -> Cow<'static, str> {
                Cow::Borrowed($kind)
            }

            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                f(self.$as_bytes())
            }
        }
    )+};
}

borrowed_keys!("text", as_bytes: String, Box<str>, Arc<str>);
borrowed_keys!("bytes", as_ref: Vec<u8>, Box<[u8]>, Arc<[u8]>);

impl<const N: usize> Key for [u8; N] {
    fn kind() -> Cow<'static, str> {
        Cow::Borrowed("bytes")
    }

    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self)
    }
}

#[cfg(feature = "uuid")]
impl Key for uuid::Uuid {
    fn kind() -> Cow<'static, str> {
        Cow::Borrowed("uuid")
    }

    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self.as_bytes())
    }
}

macro_rules! tuple_keys {
    ($($part:ident $at:tt),+) => {
        impl<$($part: Key),+> Key for ($($part,)+) {
            fn kind() -> Cow<'static, str> {
                Cow::Owned(format!("({})", [$($part::kind()),+].join(",")))
            }

            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                let mut scratch = Scratch::new();
                $(self.$at.with_bytes(|bytes| scratch.push_part(bytes));)+
                f(scratch.as_slice())
            }
        }
    };
}

tuple_keys!(A 0, B 1);
tuple_keys!(A 0, B 1, C 2);
tuple_keys!(A 0, B 1, C 2, D 3);
