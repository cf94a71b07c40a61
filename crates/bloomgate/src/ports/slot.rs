//! A slot of the shared cache: its name, its states, the operations on it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{LeaseId, WriteId};
use crate::key::KeyBytes;

/// The name of one key's slot in the shared cache, and the schema of what its caller reads there.
///
/// Builds with different schemas use the same slot, so that a write through one of them ends what the
/// others have cached (rule B10); an entry of another schema can't be used.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SlotKey {
    prefix: Arc<str>,
    schema: u64,
    key: KeyBytes,
}

impl SlotKey {
    /// The slot of `key` under `prefix` (namespace and epoch, see
    /// [`slot_prefix`](crate::shared_cache::slot_prefix)), for entries of this schema.
    #[must_use]
    pub fn new(prefix: Arc<str>, schema: u64, key: KeyBytes) -> Self {
        Self { prefix, schema, key }
    }

    /// Namespace and epoch.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The schema of the entries, as a number.
    #[must_use]
    pub fn schema(&self) -> u64 {
        self.schema
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &KeyBytes {
        &self.key
    }
}

impl fmt::Debug for SlotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SlotKey({}, {:?})", self.prefix, self.key)
    }
}

/// The state of a slot.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Slot {
    /// A row's payload, valid until `until` (Unix ms).
    Value {
        /// The encoded row, without the envelope.
        payload: Bytes,
        /// The absolute end of its validity.
        until: u64,
    },
    /// No such row, valid until `until` (Unix ms).
    Null {
        /// The absolute end of its validity.
        until: u64,
    },
    /// The slot was empty and is now leased to the caller, which alone may fill it. Only
    /// [`SlotOp::GetOrLease`] is answered so.
    LeaseGranted,
    /// The slot is empty, or holds what the caller can't use, and the caller has no lease: load,
    /// don't fill.
    Empty,
    /// Another caller holds the lease.
    LeaseHeld,
    /// A write is open: load, don't fill.
    WriteIntent,
}

/// The content of a leased slot once it is filled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry {
    /// A row's payload.
    Value(Bytes),
    /// No such row.
    Null,
}

/// The outcome of a fill.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Filled {
    /// The entry is in the slot.
    Stored,
    /// The lease was gone (a write began, or it expired): nothing was stored.
    LeaseLost,
}

/// Open writes of one key that a write intent tells apart.
pub const MAX_INTENT_WRITES: usize = 16;

/// An operation on a slot. Each is one atomic step at the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlotOp {
    /// Reads the slot and changes nothing. Answered with [`SlotReply::Slot`].
    Get,
    /// Reads the slot; if it is empty, or holds what the caller can't use (an entry of another
    /// schema, bytes of another format), leases it (rules B9, B11, B16). A server that is full or
    /// read-only is read without leasing (rule B15). Answered with [`SlotReply::Slot`].
    GetOrLease {
        /// The lease to take, fresh for each attempt.
        lease: LeaseId,
        /// When the lease expires.
        ttl: Duration,
    },
    /// Puts `entry` in place of this very lease; does nothing if the lease is gone (rule B12).
    /// Answered with [`SlotReply::Filled`].
    Fill {
        /// The caller's own lease.
        lease: LeaseId,
        /// The new content.
        entry: Entry,
        /// The end of the entry's validity in Unix ms, stored with it.
        until: u64,
        /// When the server drops the entry.
        ttl: Duration,
    },
    /// Gives this very lease back; does nothing if it is gone. Answered with [`SlotReply::Done`].
    Release {
        /// The caller's own lease.
        lease: LeaseId,
    },
    /// Adds `write` to the slot's write intent, which takes the place of whatever stands there
    /// (rule B10). Of more than [`MAX_INTENT_WRITES`] open writes only the latest deadline is kept
    /// (rule B9). Answered with [`SlotReply::Done`].
    PutIntent {
        /// The write that begins.
        write: WriteId,
        /// When its part of the intent expires.
        ttl: Duration,
    },
    /// Removes `write` from the slot's write intent and leaves the other writes; deletes an entry
    /// or a lease (rule B14). Answered with [`SlotReply::Done`].
    ClearIntent {
        /// The write that ends.
        write: WriteId,
    },
}

/// The reply to a [`SlotOp`]. One of another kind than the operation's is an
/// [`InvalidResponse`](crate::StoreErrorKind::InvalidResponse).
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlotReply {
    /// The slot's state.
    Slot(Slot),
    /// The outcome of a fill.
    Filled(Filled),
    /// The operation took effect.
    Done,
}
