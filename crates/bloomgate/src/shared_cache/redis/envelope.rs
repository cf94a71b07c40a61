//! The bytes of a slot: a tag, a check of the key, the schema, the payload.
//!
//! | tag | rest |
//! |---|---|
//! | `V` (value) | key check, schema, end in Unix ms (8 bytes each), the row's payload |
//! | `N` (null) | key check, schema, end |
//! | `L` (lease) | the lease's id, 32 hexadecimal digits |
//! | `M` (write intent) | for each open write its id, `:`, its deadline in ms by the server's clock, `;`; for those past 16 one entry with the id `0` and their latest deadline |
//!
//! Numbers are little-endian. A payload is everything after the first 25 bytes, so no payload can
//! look like a sentinel. The key check (XXH3-64 of the canonical key) guards against a reply that
//! belongs to another key: a mismatch is never served.

use bytes::{BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_64;

use crate::ports::{Entry, LeaseId, Slot, SlotKey};

const VALUE: u8 = b'V';
const NULL: u8 = b'N';
const LEASE: u8 = b'L';
const INTENT: u8 = b'M';
/// Length of tag, key check, schema and end.
pub(super) const HEAD: usize = 25;

/// Why the bytes of a slot can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// Not an envelope.
    Malformed,
    /// An envelope of another key.
    OtherKey,
    /// An entry of a build with another schema.
    OtherSchema,
}

pub(crate) fn encode(slot: &SlotKey, entry: &Entry, until: u64) -> Bytes {
    let (tag, payload) = match entry {
        Entry::Value(payload) => (VALUE, &payload[..]),
        Entry::Null => (NULL, &[][..]),
    };
    let mut out = BytesMut::with_capacity(HEAD + payload.len());
    out.put_u8(tag);
    out.put_u64_le(check_of(slot));
    out.put_u64_le(slot.schema());
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
        _ => return Err(Unusable::Malformed),
    }
    if number(bytes, 1) != check_of(slot) {
        return Err(Unusable::OtherKey);
    }
    if number(bytes, 9) != slot.schema() {
        return Err(Unusable::OtherSchema);
    }
    let until = number(bytes, 17);
    match bytes[0] {
        VALUE => Ok(Slot::Value { payload: bytes.slice(HEAD..), until }),
        _ if bytes.len() == HEAD => Ok(Slot::Null { until }),
        _ => Err(Unusable::Malformed),
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
        SlotKey::new("test:".into(), 1, KeyBytes::of(&id))
    }

    proptest! {
        #[test]
        fn case_25_any_payload_comes_back_as_a_value(payload: Vec<u8>, until: u64, id: i64) {
            let payload = Bytes::from(payload);
            let stored = encode(&slot(id), &Entry::Value(payload.clone()), until);
            prop_assert_eq!(decode(&slot(id), &stored), Ok(Slot::Value { payload, until }));
        }

        #[test]
        fn arbitrary_bytes_are_an_entry_only_with_a_whole_head(bytes: Vec<u8>, id: i64) {
            if let Ok(Slot::Null { .. } | Slot::Value { .. }) = decode(&slot(id), &Bytes::from(bytes.clone())) {
                prop_assert!(bytes.len() >= HEAD);
            }
        }
    }

    #[test]
    fn case_25_payloads_that_look_like_tags_are_values() {
        for payload in
            ["", "null", "NULL", "*", "{}", "\0", "V", "N", "L", "M", "N12345678abcdefgh12345678"]
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

    #[test]
    fn an_entry_of_another_schema_is_not_served() {
        let other = SlotKey::new("test:".into(), 2, KeyBytes::of(&1_i64));
        for entry in [Entry::Null, Entry::Value(Bytes::from_static(b"v"))] {
            assert_eq!(decode(&other, &encode(&slot(1), &entry, 9)), Err(Unusable::OtherSchema));
        }
    }
}
