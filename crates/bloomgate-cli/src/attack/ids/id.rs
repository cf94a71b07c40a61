//! One id as it is written into a request path.

use std::fmt::Write;

use bytes::{Bytes, BytesMut};
use uuid::Uuid;

/// The longest text id, in bytes before percent-encoding.
pub(crate) const MAX_TEXT_BYTES: usize = 4096;
/// The number of digits of the largest `u64`.
const MAX_DIGITS: usize = 20;

/// An id of any of the kinds that `--ids` offers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Id {
    /// Written in decimal.
    Int(u64),
    /// Written in lower case with hyphens.
    Uuid(Uuid),
    /// Percent-encoded text, written as it stands.
    Text(Bytes),
}

impl Id {
    /// An upper bound for the number of bytes that [`write`](Self::write) adds.
    pub(crate) fn max_bytes(&self) -> usize {
        match self {
            Id::Int(_) => MAX_DIGITS,
            Id::Uuid(_) => uuid::fmt::Hyphenated::LENGTH,
            Id::Text(text) => text.len(),
        }
    }

    /// Appends the id to a path.
    pub(crate) fn write(&self, path: &mut BytesMut) {
        match self {
            Id::Int(id) => {
                // Writing to a growing buffer can't fail.
                let written = write!(path, "{id}");
                debug_assert!(written.is_ok());
            }
            Id::Uuid(id) => {
                let mut buffer = [0; uuid::fmt::Hyphenated::LENGTH];
                path.extend_from_slice(id.hyphenated().encode_lower(&mut buffer).as_bytes());
            }
            Id::Text(text) => path.extend_from_slice(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(id: &Id) -> String {
        let mut path = BytesMut::with_capacity(id.max_bytes());
        let capacity = path.capacity();
        id.write(&mut path);
        assert_eq!(path.capacity(), capacity, "one allocation");
        String::from_utf8(path.to_vec()).unwrap()
    }

    #[test]
    fn integers_are_plain_decimals() {
        for id in [0, 9, 10, 1 << 40, i64::MAX as u64, u64::MAX] {
            assert_eq!(written(&Id::Int(id)), id.to_string());
        }
    }

    #[test]
    fn uuids_have_hyphens_and_lower_case() {
        let id = Uuid::from_u128(0xA1A2_A3A4_B1B2_41C2_81D2_D3D4_D5D6_D7D8);
        assert_eq!(written(&Id::Uuid(id)), "a1a2a3a4-b1b2-41c2-81d2-d3d4d5d6d7d8");
    }

    #[test]
    fn text_is_written_as_it_stands() {
        assert_eq!(written(&Id::Text(Bytes::from_static(b"a%2Fb"))), "a%2Fb");
    }
}
