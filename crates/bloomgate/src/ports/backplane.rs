//! The port to the other instances.

use std::fmt;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::WriteId;
use crate::answer::OpenReason;
use crate::error::BackplaneError;
use crate::key::KeyBytes;

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
