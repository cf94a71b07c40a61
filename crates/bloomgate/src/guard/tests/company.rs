//! A backplane whose standing the test sets.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::stops::{At, Stops};
use crate::error::BackplaneError;
use crate::key::KeyBytes;
use crate::ports::{Backplane, Standing, Token};

/// In step with everyone, unless told otherwise.
#[derive(Clone, Debug)]
pub(super) struct Company {
    standing: watch::Sender<Standing>,
    stops: Stops,
    refuses: Arc<Mutex<bool>>,
    left: Arc<Mutex<bool>>,
}

impl Company {
    pub(super) fn new(stops: Stops) -> Self {
        Self {
            standing: watch::Sender::new(Standing::Current),
            stops,
            refuses: Arc::default(),
            left: Arc::default(),
        }
    }

    pub(super) fn set(&self, standing: Standing) {
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

impl Backplane for Company {
    fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    fn until_writable(&self) -> BoxFuture<'_, Result<(), BackplaneError>> {
        Box::pin(async move {
            self.stops.pass(At::Joining).await;
            Ok(())
        })
    }

    fn announce<'a>(
        &'a self,
        _key: &'a KeyBytes,
        _write: Token,
    ) -> BoxFuture<'a, Result<(), BackplaneError>> {
        Box::pin(async move {
            self.stops.pass(At::Announcing).await;
            if *self.refuses.lock() {
                return Err(BackplaneError("the test says so".into()));
            }
            Ok(())
        })
    }

    fn conclude<'a>(&'a self, _key: &'a KeyBytes, _write: Token) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        *self.left.lock() = true;
        Box::pin(std::future::ready(()))
    }
}
