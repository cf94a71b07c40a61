//! The port to the other instances, in both directions.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{CopyOffer, CopyReader, CopyRequest, FleetStatus, WriteId};
use crate::answer::OpenReason;
use crate::clock::Moment;
use crate::error::BackplaneError;
use crate::key::KeyBytes;

/// Whether this instance is provably in step with all others.
///
/// A link that was lost and found again is a doubt that passes: coming back to
/// [`InSync`](Self::InSync) promises that everything that the others began or ended meanwhile has
/// been delivered. A backplane that can't promise it voids what the guard knows first, through
/// [`PeerEvents::void`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// In step until `until`, on the monotonic clock of the guard: no write of another instance
    /// returns from its Begin before it was delivered here or `until` has passed. A link that
    /// doesn't end has [`Moment::NEVER`].
    InSync {
        /// The end of the lease. The guard reads it at every refusal and every local look-up.
        until: Moment,
    },
    /// Not provably so: the gate is open, for this reason, and the local cache serves nothing as
    /// fresh.
    OutOfSync(OpenReason),
}

/// What keeps the gates and the local caches of several instances in step: the outward direction.
pub trait Backplane: Send + Sync + fmt::Debug + 'static {
    /// Hands over the port through which the backplane delivers what the others do. The guard
    /// calls it once, while it is built, within a tokio runtime; until the backplane has
    /// called [`PeerEvents::set_link`], the guard is out of sync.
    ///
    /// # Errors
    /// When a guard is attached already.
    fn attach(&self, events: Arc<dyn PeerEvents>) -> Result<(), BackplaneError>;

    /// Waits until a write may begin at all. Asked before a transaction is opened, so that none is
    /// kept open by what [`begin_write`](Self::begin_write) would wait for.
    ///
    /// # Errors
    /// When no write can begin now.
    fn ready_for_writes(&self) -> BoxFuture<'_, Result<(), BackplaneError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Part of Begin: returns once every other instance has admitted the key, or can't refuse it.
    /// Says in which epoch's slot the write intent belongs; `None` for that in use. It need not be
    /// that in use: the other instances may have gone on to another one.
    ///
    /// # Errors
    /// When that can't be known. The write then fails before it starts.
    fn begin_write<'a>(
        &'a self,
        write: &'a PeerWrite,
    ) -> BoxFuture<'a, Result<Option<String>, BackplaneError>>;

    /// Part of End: the others learn that the write is over.
    ///
    /// # Errors
    /// When that isn't confirmed. It may be called again until it succeeds, and for a write that
    /// has ended already.
    fn end_write<'a>(&'a self, write: &'a PeerWrite) -> BoxFuture<'a, Result<(), BackplaneError>>;

    /// True if the write has begun in a log that was lost since: [`end_write`](Self::end_write)
    /// then takes as long as a Begin, and End must not return before it has (rule C26). Costs
    /// nothing.
    fn begin_is_lost(&self, _write: &PeerWrite) -> bool {
        false
    }

    /// Makes the others drop everything that they cache.
    ///
    /// # Errors
    /// When that isn't confirmed. It may be called again.
    fn invalidate_all(&self) -> BoxFuture<'_, Result<(), BackplaneError>>;

    /// Asks the others for a complete gate. The caller records what it admits from before it asks;
    /// `None` if none of them has one to give.
    ///
    /// # Errors
    /// When they can't be asked.
    fn copy_gate(
        &self,
        _request: CopyRequest,
    ) -> BoxFuture<'_, Result<Option<Box<dyn CopyReader>>, BackplaneError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// What this instance knows of the others; `None` for a backplane without any.
    fn status(&self) -> Option<FleetStatus> {
        None
    }

    /// Leaves the other instances. The guard has stopped refusing before.
    fn leave(&self) -> BoxFuture<'_, ()>;
}

/// An open write, as the instances tell one another of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerWrite {
    /// What is written.
    pub key: KeyBytes,
    /// Which write it is.
    pub write: WriteId,
    /// True for a write that may make the key: every gate must admit it.
    pub admits: bool,
    /// When it lapses, on the clock of the instance that holds this value.
    pub deadline: Moment,
}

impl PeerWrite {
    /// A write of `key` that lapses at `deadline`.
    #[must_use]
    pub fn new(key: KeyBytes, write: WriteId, admits: bool, deadline: Moment) -> Self {
        Self { key, write, admits, deadline }
    }
}

/// The inward direction: what a backplane tells the guard of the other instances. Every call takes
/// effect before it returns, and none waits.
pub trait PeerEvents: Send + Sync + fmt::Debug + 'static {
    /// Takes the state of the link. To be called again with a later end at each renewal.
    fn set_link(&self, state: LinkState);

    /// Admissions or invalidations may have been missed: every generation loses its certificate,
    /// what is cached locally is dropped, and the gate stays open until it has been rebuilt.
    fn void(&self, reason: OpenReason);

    /// Another instance's Begin: the key enters the set of open writes, then every generation of
    /// the gate, and what is cached of it is dropped (rules A1, A3, A13).
    ///
    /// # Errors
    /// When as many writes are open as the guard allows. The backplane must not acknowledge the
    /// write then, and is out of sync.
    fn begin(&self, write: &PeerWrite) -> Result<(), BackplaneError>;

    /// Another instance's End.
    fn end(&self, write: &PeerWrite);

    /// Everything that is cached may be outdated; nothing was missed that concerns the gate.
    fn invalidate_all(&self);

    /// Every write that is open here, of this instance and of the others.
    fn open_writes(&self) -> Vec<PeerWrite>;

    /// Another instance asks for the gate. What is offered must hold every key whose Begin has been
    /// delivered here.
    fn offer_copy(&self, _request: &CopyRequest) -> CopyOffer {
        CopyOffer::NotNow
    }

    /// Replaces the epoch in the names of all slots: entries under another epoch are out of reach
    /// from here on. Until the first call a guard has an epoch of its own, and shares nothing.
    fn set_epoch(&self, epoch: &str);
}
