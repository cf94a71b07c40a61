//! A slot of the shared cache: its name, its states, the operations on it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{LeaseId, WriteId};
use crate::key::KeyBytes;

/// The name of one key's slot in the shared cache.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SlotKey {
    prefix: Arc<str>,
    key: KeyBytes,
}

impl SlotKey {
    /// The slot of `key` under `prefix` (namespace and schema, see
    /// [`slot_prefix`](crate::shared_cache::slot_prefix)).
    #[must_use]
    pub fn new(prefix: Arc<str>, key: KeyBytes) -> Self {
        Self { prefix, key }
    }

    /// Namespace and schema.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
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
    /// The slot is empty, and the caller has no lease: load, don't fill.
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

/// An operation on a slot. Each is one atomic step at the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlotOp {
    /// Reads the slot and changes nothing. Answered with [`SlotReply::Slot`].
    Get,
    /// Reads the slot; if it is empty, leases it (rules B9, B11). A server that is full or
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
    /// Adds `write` to the slot's write intent, which takes the place of any entry or lease (rule
    /// B10). Answered with [`SlotReply::Done`].
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
