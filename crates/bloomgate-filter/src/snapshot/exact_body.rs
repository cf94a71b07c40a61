//! The snapshot body of an exact set: its keys in ascending order, each after its length.

use std::io::{Read, Write};

use super::header::{FamilyParams, Header, invalid};
use super::stream::{BodyReader, SnapshotWriter};
use super::{Persist, sealed::WriteBody};
use crate::error::Error;
use crate::exact::ExactSet;

/// Bytes of an empty key: its length field.
pub(super) const MIN_BYTES: u64 = 8;

impl Persist for ExactSet {}

impl WriteBody for ExactSet {
    fn write_snapshot(&self, position: &[u8], out: &mut dyn Write) -> Result<(), Error> {
        let keys = self.sorted_keys();
        let header = Header {
            family_params: FamilyParams::Exact { keys: keys.len() as u64 },
            items: self.stats().items,
            body_bytes: keys.iter().map(|key| MIN_BYTES + key.len() as u64).sum(),
            position: position.into(),
        };
        let mut writer = SnapshotWriter::new(out, &header)?;
        for key in &keys {
            writer.put(&(key.len() as u64).to_le_bytes())?;
            writer.put(key)?;
        }
        writer.finish()
    }
}

pub(super) fn read<R: Read>(
    count: u64,
    items: u64,
    body: BodyReader<R>,
) -> Result<ExactSet, Error> {
    let bytes = body.into_bytes()?;
    // Validated before the set is built, which takes several times the memory.
    let mut rest = bytes.as_slice();
    let mut last = None;
    for _ in 0..count {
        let Some((key, after)) = split_key(rest) else {
            return invalid("body", "ends within a key");
        };
        if last.is_some_and(|last| last >= key) {
            return invalid("body", "has keys that are out of order or repeated");
        }
        (last, rest) = (Some(key), after);
    }
    if !rest.is_empty() {
        return invalid("body", "has more keys than the header states");
    }
    let mut rest = bytes.as_slice();
    let keys = std::iter::from_fn(|| {
        let (key, after) = split_key(rest)?;
        rest = after;
        Some(key)
    });
    Ok(ExactSet::from_keys(keys, count as usize, items))
}

/// The first key of a body, and the rest.
fn split_key(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = body.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}
