//! The port to the cache that all processes share.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::{InstanceId, LeaseId, WriteId};
use crate::error::StoreError;
use crate::key::KeyBytes;

/// Names one key's slot in the shared cache.
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

/// What the shared cache says of a slot.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A row's payload, good until `until` (Unix ms).
    Value {
        /// The encoded row, without the envelope.
        payload: Bytes,
        /// Absolute end.
        until: u64,
    },
    /// No such row, good until `until` (Unix ms).
    Null {
        /// Absolute end.
        until: u64,
    },
    /// The slot was empty and is now leased to the asker, who alone may fill it.
    LeaseGranted,
    /// The slot is empty, but no lease was asked for or could be had: load, don't fill.
    Empty,
    /// Another holds the lease.
    LeaseHeld,
    /// A write is open: load, don't fill.
    WriteIntent,
}

/// What to put into a leased slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A row's payload.
    Value(Bytes),
    /// No such row.
    Null,
}

/// What became of a fill.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// The entry stands.
    Stored,
    /// The lease was gone (a write began, or it ran out): nothing was stored.
    LeaseLost,
}

/// The cache that all processes share: one slot a key, with the rules of section B of the
/// protocol. Every method is one atomic step at the server.
pub trait Store: Send + Sync + fmt::Debug + 'static {
    /// Makes sure that the server can be worked with (its version, say). Called at the start, and
    /// again after an outage.
    fn prepare(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Reads the slot; if it is empty, leases it under `lease` for `ttl` (rules B9, B11).
    /// A server that is full or read-only is read without leasing (rule B15).
    fn get_or_lease<'a>(
        &'a self,
        slot: &'a SlotKey,
        lease: LeaseId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Slot, StoreError>>;

    /// Reads the slot and takes nothing.
    fn get<'a>(&'a self, slot: &'a SlotKey) -> BoxFuture<'a, Result<Slot, StoreError>>;

    /// Puts `entry` in place of this very lease, to live for `ttl` and say so in `until` (Unix ms);
    /// does nothing if the lease is gone (rule B12).
    fn fill<'a>(
        &'a self,
        slot: &'a SlotKey,
        lease: LeaseId,
        entry: Entry,
        until: u64,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Filled, StoreError>>;

    /// Gives this very lease back; does nothing if it is gone.
    fn release<'a>(
        &'a self,
        slot: &'a SlotKey,
        lease: LeaseId,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Adds `write` to the slot's write intent, in place of whatever stood there, for `lives` (rule B10).
    fn put_intent<'a>(
        &'a self,
        slot: &'a SlotKey,
        write: WriteId,
        lives: Duration,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Removes `write` from the slot's write intent and leaves the others; deletes what stands there if it
    /// isn't a write intent (rule B14).
    fn clear_intent<'a>(
        &'a self,
        slot: &'a SlotKey,
        write: WriteId,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Says that `member` is live in `namespace` and counts this heartbeat; returns what is known of
    /// the others whose heartbeats are younger than `ttl`.
    fn heartbeat<'a>(
        &'a self,
        namespace: &'a str,
        member: InstanceId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Vec<Peer>, StoreError>>;

    /// Takes `member` off the list.
    fn leave<'a>(
        &'a self,
        namespace: &'a str,
        member: InstanceId,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Another process in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its token, in hexadecimal.
    pub member: String,
    /// How often it has said that it is live.
    pub heartbeats: u64,
}
