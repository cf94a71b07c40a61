//! The ports over which a complete gate is copied from one member of a fleet to another.

use std::fmt;
use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::WriteId;
use crate::error::{BackplaneError, BoxError, StoreError};

/// Which gate is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyRequest {
    /// Kind of the keys, and settings of the gate, in words that both sides compare.
    pub gate: String,
    /// [Fingerprint](bloomgate_filter::Secret::fingerprint) of the secret.
    pub secret: [u8; 8],
}

impl CopyRequest {
    /// A request for this gate under this secret.
    #[must_use]
    pub fn new(gate: impl Into<String>, secret: [u8; 8]) -> Self {
        Self { gate: gate.into(), secret }
    }
}

/// What a guard answers when another member asks for its gate.
#[derive(Debug)]
#[non_exhaustive]
pub enum CopyOffer {
    /// The gate, complete as of this answer.
    Gate(Box<dyn CopySource>),
    /// The gate isn't complete, or the link has no lease now.
    NotNow,
    /// It is of another kind.
    OtherGate,
    /// It is the same, under another secret, and of no use to who asks.
    OtherSecret,
}

/// A gate that can be written out.
pub trait CopySource: Send + fmt::Debug {
    /// Writes it. Blocks.
    ///
    /// # Errors
    /// When `out` fails.
    fn write(self: Box<Self>, out: &mut dyn Write) -> Result<(), BoxError>;
}

/// A copy that is under way.
pub trait CopyReader: Send + fmt::Debug {
    /// The next bytes; `None` after the last ones.
    ///
    /// # Errors
    /// When it is cut off.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, BackplaneError>>;
}

/// Carries copies between members, in chunks, over a connection of its own.
pub trait CopyChannel: Send + fmt::Debug {
    /// Takes the answer to a request; false if another member has it.
    fn claim(&mut self, copy: WriteId) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Appends a chunk, and returns how many wait to be taken with it. What nobody takes expires
    /// after a minute.
    fn push(&mut self, copy: WriteId, chunk: Bytes) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Number of chunks that wait to be taken.
    fn waiting(&mut self, copy: WriteId) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Takes the oldest chunk; waits up to `wait` for one.
    fn pop(
        &mut self,
        copy: WriteId,
        wait: Duration,
    ) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>>;

    /// Removes what is left.
    fn discard(&mut self, copy: WriteId) -> BoxFuture<'_, Result<(), StoreError>>;
}
