//! The backplane of a guard that has no other instances.

use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};

use crate::clock::Moment;
use crate::error::BackplaneError;
use crate::ports::{Backplane, LinkState, PeerEvents, PeerWrite};

/// One instance, because nothing is shared or because its user says so
/// ([`single_instance`](crate::GuardBuilder::single_instance)). In sync for ever.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Backplane for Alone {
    fn attach(&self, events: Arc<dyn PeerEvents>) -> Result<(), BackplaneError> {
        // Slots keep their names over a restart.
        events.set_epoch("alone");
        events.set_link(LinkState::InSync { until: Moment::NEVER });
        Ok(())
    }

    fn begin_write<'a>(
        &'a self,
        _: &'a PeerWrite,
    ) -> BoxFuture<'a, Result<Option<String>, BackplaneError>> {
        Box::pin(ready(Ok(None)))
    }

    fn end_write<'a>(&'a self, _: &'a PeerWrite) -> BoxFuture<'a, Result<(), BackplaneError>> {
        Box::pin(ready(Ok(())))
    }

    fn invalidate_all(&self) -> BoxFuture<'_, Result<(), BackplaneError>> {
        Box::pin(ready(Ok(())))
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}
