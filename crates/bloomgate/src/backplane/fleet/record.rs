//! The records that members append to the log.
//!
//! A record is a version byte, and the operations in the postcard format. A member that finds a
//! version it doesn't know can't tell what it missed: it opens its gate and says so.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::clock::{Clock, Moment};
use crate::key::KeyBytes;
use crate::ports::{PeerWrite, WriteId};

/// The version of the records that this build writes and reads.
const VERSION: u8 = 1;
/// No write is open for longer; what a record says beyond it is cut (rule B9).
const MAX_REMAINING: Duration = Duration::from_secs(600);

/// One operation of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Op {
    /// A write has begun, or is known to be open (rule C26).
    Begin(OpenRecord),
    /// A write is over.
    End { key: Vec<u8>, write: [u8; 16] },
    /// Everything that is cached may be outdated.
    InvalidateAll,
    /// The appender knows every write that was open under earlier identities, and has announced
    /// them all (rule C26).
    OpenSetComplete,
    /// The appender asks for a complete gate.
    CopyWanted { copy: [u8; 16], gate: String, secret: [u8; 8] },
    /// The appender has that gate, under another secret.
    CopyRefused { copy: [u8; 16] },
}

/// An open write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenRecord {
    key: Vec<u8>,
    write: [u8; 16],
    admits: bool,
    /// What is left of its window when the record is made. The reader counts from when it applies
    /// the record, so that the write lapses late there, never early.
    remaining_ms: u64,
}

/// Why a record can't be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RecordError {
    /// Of another build.
    #[error("the log has records of version {0}, which this build doesn't know")]
    Version(u8),
    /// Not a record.
    #[error("the log has a record that can't be read")]
    Malformed,
}

impl OpenRecord {
    pub(super) fn new(write: &PeerWrite, now: Moment) -> Self {
        // A part of a millisecond counts as a whole one: late, never early.
        let remaining = write.deadline.since(now).min(MAX_REMAINING).as_millis() + 1;
        Self {
            key: write.key.as_slice().to_vec(),
            write: write.write.to_bytes(),
            admits: write.admits,
            remaining_ms: u64::try_from(remaining).unwrap_or(u64::MAX),
        }
    }

    /// The write as this process counts its deadline.
    pub(super) fn to_write(&self, clock: &Clock) -> PeerWrite {
        let remaining = Duration::from_millis(self.remaining_ms).min(MAX_REMAINING);
        let key = KeyBytes::from_canonical(&self.key);
        let deadline = clock.now() + remaining;
        PeerWrite::new(key, WriteId::from_bytes(self.write), self.admits, deadline)
    }
}

impl Op {
    pub(super) fn begin(write: &PeerWrite, now: Moment) -> Self {
        Self::Begin(OpenRecord::new(write, now))
    }

    pub(super) fn end(write: &PeerWrite) -> Self {
        Self::End { key: write.key.as_slice().to_vec(), write: write.write.to_bytes() }
    }
}

/// The record of these operations, in their order.
pub(super) fn encode(ops: &[Op]) -> Bytes {
    // Into a vector, which grows, this can't fail: the types are plain data.
    let encoded = postcard::to_extend(ops, vec![VERSION]).unwrap_or_default();
    Bytes::from(encoded)
}

/// The operations of a record; none for the empty record that a fresh log begins with.
pub(super) fn decode(record: &[u8]) -> Result<Vec<Op>, RecordError> {
    match record.split_first() {
        None => Ok(Vec::new()),
        Some((&VERSION, ops)) => match postcard::take_from_bytes(ops) {
            Ok((ops, [])) => Ok(ops),
            _ => Err(RecordError::Malformed),
        },
        Some((&version, _)) => Err(RecordError::Version(version)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(clock: &Clock) -> PeerWrite {
        let deadline = clock.now() + Duration::from_millis(29_999);
        PeerWrite::new(KeyBytes::of(&7_i64), WriteId::fresh(), true, deadline)
    }

    #[test]
    fn operations_survive_the_record_in_their_order() {
        let (clock, _) = Clock::manual();
        let write = write(&clock);
        let ops = vec![
            Op::begin(&write, clock.now()),
            Op::end(&write),
            Op::InvalidateAll,
            Op::OpenSetComplete,
            Op::CopyWanted { copy: [1; 16], gate: "int".to_owned(), secret: [2; 8] },
            Op::CopyRefused { copy: [1; 16] },
        ];
        assert_eq!(decode(&encode(&ops)), Ok(ops));
        assert_eq!(decode(&encode(&[])), Ok(Vec::new()));
        assert_eq!(decode(b""), Ok(Vec::new()), "the first entry of a fresh log");
    }

    #[test]
    fn records_of_another_version_and_damaged_ones_are_told_apart_and_never_misread() {
        let (clock, _) = Clock::manual();
        let whole = encode(&[Op::begin(&write(&clock), clock.now())]);
        assert_eq!(decode(&[&[2][..], &whole[1..]].concat()), Err(RecordError::Version(2)));
        for length in 1..whole.len() {
            assert_eq!(decode(&whole[..length]), Err(RecordError::Malformed), "{length}");
        }
        let longer = [&whole[..], b"x"].concat();
        assert_eq!(decode(&longer), Err(RecordError::Malformed));
    }

    #[test]
    fn a_write_lapses_at_its_reader_late_and_never_after_the_longest_window() {
        let (clock, time) = Clock::manual();
        let write = write(&clock);
        let record = OpenRecord::new(&write, clock.now());
        time.advance(Duration::from_secs(1));
        let read = record.to_write(&clock);
        assert_eq!((&read.key, read.write, read.admits), (&write.key, write.write, true));
        assert_eq!(read.deadline.since(write.deadline), Duration::from_millis(1_001));
        let endless = PeerWrite::new(write.key, write.write, true, Moment::NEVER);
        let read = OpenRecord::new(&endless, clock.now()).to_write(&clock);
        assert_eq!(read.deadline.since(clock.now()), MAX_REMAINING);
    }
}
