//! The traits that cross rooms: what the guard needs of the world outside.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::answer::OpenReason;
use crate::error::{BackplaneError, BoxError, SourceError, StoreError};
use crate::key::KeyBytes;

macro_rules! random_ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            /// Draws a fresh id.
            #[must_use]
            pub fn fresh() -> Self {
                Self(rand::random())
            }

            /// 32 lower-case hexadecimal digits.
            #[must_use]
            pub fn to_hex(self) -> String {
                to_hex(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.to_hex())
            }
        }
    )+};
}

random_ids! {
    /// Names one attempt to lease a slot; random, fresh for each.
    LeaseId,
    /// Names one write; random, fresh for each.
    WriteId,
    /// Names one process in its namespace; random, fresh at each start.
    InstanceId,
}

fn to_hex(bytes: &[u8; 16]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(32), |mut text, byte| {
        // Writing to a String can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Loads one row from the database.
///
/// `Ok(None)` means that a completed query found no row, and only that: an error, a time-out or a
/// row that doesn't decode must be an `Err`, or an existing id would be remembered as absent.
pub trait Loader<K, V>: Send + Sync + 'static {
    /// What the database can fail with.
    type Error: Into<BoxError>;

    /// Asks for the row with this key. May be dropped at any await when its budget is over.
    fn load(&self, key: &K) -> impl Future<Output = Result<Option<V>, Self::Error>> + Send;
}

/// A place in a source's order, opaque to everyone but the source that named it.
#[derive(Clone)]
pub struct Cursor(Arc<dyn Any + Send + Sync>);

impl Cursor {
    /// Wraps a cursor.
    #[must_use]
    pub fn new<T: Any + Send + Sync>(cursor: T) -> Self {
        Self(Arc::new(cursor))
    }

    /// The cursor, if it is of this type.
    #[must_use]
    pub fn position<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cursor")
    }
}

/// Where a scan begins.
#[derive(Clone, Debug, Default)]
pub enum ScanFrom {
    /// Before the first key.
    #[default]
    Start,
    /// After the place that a [`Scan::checkpoint`] named.
    After(Cursor),
}

/// What a scan hands its keys to.
pub trait Scan: Send {
    /// The canonical bytes of one key.
    fn key(&mut self, canonical: &[u8]);
    /// Everything up to `place` has been handed over; a scan that fails later may resume here.
    fn checkpoint(&mut self, cursor: Cursor);
}

/// The word of a source that it reached the end of its keys. Nothing else makes a generation
/// valid: a stream that merely failpoints is not an end.
#[must_use]
#[derive(Debug)]
pub struct ScanCompleted(());

impl ScanCompleted {
    /// To be returned by a source after, and only after, the database has said "no more rows".
    pub fn explicit_end() -> Self {
        Self(())
    }
}

/// What a source can say of writes that a killed predecessor may have left under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quiesced {
    /// Every write that was under way when the question was put has ended.
    Drained,
    /// The database can't tell; the guard waits for the write window to pass.
    Unknown,
}

/// Where the existing ids come from.
pub trait Source: Send + Sync + fmt::Debug + 'static {
    /// How many keys there are, to size the gate by.
    fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>>;

    /// Waits until every write that was under way at the call has ended (rule A8).
    fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>> {
        Box::pin(std::future::ready(Ok(Quiesced::Unknown)))
    }

    /// Hands over every key from `from` to the end, and says so explicitly. A key that was
    /// committed before the call must be among them; a row that can't be decoded is an error.
    fn scan<'a>(
        &'a self,
        from: ScanFrom,
        into: &'a mut dyn Scan,
    ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>>;
}

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

/// Whether this instance is provably in step with all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// In step: a complete gate may refuse.
    InSync,
    /// Not provably so: the gate is open, for this reason.
    OutOfSync(OpenReason),
}

/// What keeps the gates of several instances in step.
pub trait Backplane: Send + Sync + fmt::Debug + 'static {
    /// The standing, as it changes. Between [`LinkState::InSync`] and the next one, no other
    /// instance admitted a key that this one wasn't told of. Sending [`LinkState::InSync`] while it
    /// is current already means that it was lost in between.
    fn link_state(&self) -> watch::Receiver<LinkState>;

    /// Waits until a write may begin at all. Asked before a transaction is opened, so that none is
    /// kept open by what [`announce`](Self::announce) would wait for.
    fn ready_for_writes(&self) -> BoxFuture<'_, Result<(), BackplaneError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Part of Begin: returns once every instance has admitted the key, or can't refuse it.
    fn begin_write<'a>(
        &'a self,
        key: &'a KeyBytes,
        write: WriteId,
    ) -> BoxFuture<'a, Result<(), BackplaneError>>;

    /// Part of End: tells the others that the write is over.
    fn end_write<'a>(&'a self, key: &'a KeyBytes, write: WriteId) -> BoxFuture<'a, ()>;

    /// Failpoints refusing, then leaves.
    fn leave(&self) -> BoxFuture<'_, ()>;
}
