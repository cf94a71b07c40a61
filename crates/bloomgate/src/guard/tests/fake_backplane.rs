//! A backplane whose standing the test sets.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::failpoints::{At, Failpoints};
use crate::error::BackplaneError;
use crate::key::KeyBytes;
use crate::ports::{Backplane, LinkState, WriteId};

/// In step with everyone, unless told otherwise.
#[derive(Clone, Debug)]
pub(super) struct FakeBackplane {
    standing: watch::Sender<LinkState>,
    failpoints: Failpoints,
    refuses: Arc<Mutex<bool>>,
    left: Arc<Mutex<bool>>,
}

impl FakeBackplane {
    pub(super) fn new(failpoints: Failpoints) -> Self {
        Self {
            standing: watch::Sender::new(LinkState::InSync),
            failpoints,
            refuses: Arc::default(),
            left: Arc::default(),
        }
    }

    pub(super) fn set(&self, standing: LinkState) {
        self.standing.send_replace(standing);
    }

    /// Whether announcements fail.
    pub(super) fn refuse(&self, refuses: bool) {
        *self.refuses.lock() = refuses;
    }

    pub(super) fn has_left(&self) -> bool {
        *self.left.lock()
    }
}

impl Backplane for FakeBackplane {
    fn link_state(&self) -> watch::Receiver<LinkState> {
        self.standing.subscribe()
    }

    fn ready_for_writes(&self) -> BoxFuture<'_, Result<(), BackplaneError>> {
        Box::pin(async move {
            self.failpoints.pass(At::Joining).await;
            Ok(())
        })
    }

    fn begin_write<'a>(
        &'a self,
        _key: &'a KeyBytes,
        _write: WriteId,
    ) -> BoxFuture<'a, Result<(), BackplaneError>> {
        Box::pin(async move {
            self.failpoints.pass(At::Backplane).await;
            if *self.refuses.lock() {
                return Err(BackplaneError("the test says so".into()));
            }
            Ok(())
        })
    }

    fn end_write<'a>(&'a self, _key: &'a KeyBytes, _write: WriteId) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        *self.left.lock() = true;
        Box::pin(std::future::ready(()))
    }
}
