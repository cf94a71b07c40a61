//! The bytes of a slot: one tag, a short check of the key, the payload.
//!
//! | tag | then |
//! |---|---|
//! | `V` | key check (8 bytes), end in Unix ms (8 bytes), the row's payload |
//! | `N` | key check, end |
//! | `L` | the lease's token, 32 hexadecimal digits |
//! | `M` | the intent: for each open write its token, `:`, its deadline in ms by the server's clock, `;` |
//!
//! Numbers are little-endian. A payload is whatever follows the head, so no payload can look like
//! a sentinel. The check (XXH3-64 of the canonical key) guards against an answer that belongs to
//! another key: a mismatch is never served.

use bytes::{BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_64;

use crate::ports::{Entry, LeaseId, Slot, SlotKey};

const VALUE: u8 = b'V';
const NULL: u8 = b'N';
const LEASE: u8 = b'L';
const INTENT: u8 = b'M';
/// Tag, key check, end.
const HEAD: usize = 17;

/// OpenReason the bytes of a slot can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// Not an envelope.
    Garbled,
    /// An envelope of another key.
    OtherKey,
}

pub(crate) fn encode(slot: &SlotKey, entry: &Entry, until: u64) -> Bytes {
    let (tag, payload) = match entry {
        Entry::Value(payload) => (VALUE, &payload[..]),
        Entry::Null => (NULL, &[][..]),
    };
    let mut out = BytesMut::with_capacity(HEAD + payload.len());
    out.put_u8(tag);
    out.put_u64_le(check_of(slot));
    out.put_u64_le(until);
    out.put_slice(payload);
    out.freeze()
}

pub(crate) fn lease(id: LeaseId) -> String {
    format!("L{}", id.to_hex())
}

pub(crate) fn decode(slot: &SlotKey, bytes: &Bytes) -> Result<Slot, Unusable> {
    match bytes.first() {
        Some(&LEASE) => return Ok(Slot::LeaseHeld),
        Some(&INTENT) => return Ok(Slot::WriteIntent),
        Some(&(VALUE | NULL)) if bytes.len() >= HEAD => {}
        _ => return Err(Unusable::Garbled),
    }
    if number(bytes, 1) != check_of(slot) {
        return Err(Unusable::OtherKey);
    }
    let until = number(bytes, 9);
    match bytes[0] {
        VALUE => Ok(Slot::Value { payload: bytes.slice(HEAD..), until }),
        _ if bytes.len() == HEAD => Ok(Slot::Null { until }),
        _ => Err(Unusable::Garbled),
    }
}

fn check_of(slot: &SlotKey) -> u64 {
    xxh3_64(slot.key().as_slice())
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::KeyBytes;

    fn slot(id: i64) -> SlotKey {
        SlotKey::new("test:".into(), KeyBytes::of(&id))
    }

    proptest! {
        #[test]
        fn case_25_any_payload_comes_back_as_a_value(payload: Vec<u8>, until: u64, id: i64) {
            let payload = Bytes::from(payload);
            let stored = encode(&slot(id), &Entry::Value(payload.clone()), until);
            prop_assert_eq!(decode(&slot(id), &stored), Ok(Slot::Value { payload, until }));
        }

        #[test]
        fn arbitrary_bytes_decode_or_are_refused(bytes: Vec<u8>, id: i64) {
            if let Ok(Slot::Null { .. } | Slot::Value { .. }) = decode(&slot(id), &Bytes::from(bytes.clone())) {
                prop_assert!(bytes.len() >= HEAD);
            }
        }
    }

    #[test]
    fn case_25_payloads_that_look_like_markers_are_values() {
        for payload in
            ["", "null", "NULL", "*", "{}", "\0", "V", "N", "L", "M", "N12345678abcdefgh"]
        {
            let payload = Bytes::from(payload);
            let stored = encode(&slot(1), &Entry::Value(payload.clone()), 9);
            assert_eq!(decode(&slot(1), &stored), Ok(Slot::Value { payload, until: 9 }));
        }
    }

    #[test]
    fn case_19_an_envelope_of_another_key_is_not_served() {
        let stored = encode(&slot(1), &Entry::Null, 9);
        assert_eq!(decode(&slot(1), &stored), Ok(Slot::Null { until: 9 }));
        assert_eq!(decode(&slot(2), &stored), Err(Unusable::OtherKey));
    }
}
