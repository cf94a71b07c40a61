//! A backplane whose link the test sets.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::failpoints::{At, Failpoints};
use crate::answer::OpenReason;
use crate::clock::Moment;
use crate::error::BackplaneError;
use crate::ports::{Backplane, LinkState, PeerEvents, PeerWrite};

/// In sync for ever.
pub(super) const IN_SYNC: LinkState = LinkState::InSync { until: Moment::NEVER };

/// In sync with every other instance, unless the test says otherwise.
#[derive(Clone, Debug)]
pub(super) struct FakeBackplane {
    events: Arc<Mutex<Option<Arc<dyn PeerEvents>>>>,
    failpoints: Failpoints,
    refuses: Arc<Mutex<bool>>,
    /// Ends that fail before one succeeds, and how often End was asked for.
    ends: Arc<Mutex<(u32, u32)>>,
    left: Arc<Mutex<bool>>,
    write_epoch: Arc<Mutex<Option<String>>>,
}

impl FakeBackplane {
    pub(super) fn new(failpoints: Failpoints) -> Self {
        Self {
            events: Arc::default(),
            failpoints,
            refuses: Arc::default(),
            ends: Arc::default(),
            left: Arc::default(),
            write_epoch: Arc::default(),
        }
    }

    /// The guard's side, as a backplane has it.
    pub(super) fn events(&self) -> Arc<dyn PeerEvents> {
        Arc::clone(self.events.lock().as_ref().expect("no guard is attached"))
    }

    pub(super) fn set_link(&self, state: LinkState) {
        self.events().set_link(state);
    }

    /// What others write isn't delivered any more.
    pub(super) fn lose_link(&self) {
        self.set_link(LinkState::OutOfSync(OpenReason::LinkLost));
    }

    /// The link is back; what the others wrote meanwhile was never delivered.
    pub(super) fn resync_link(&self) {
        self.events().void(OpenReason::Resyncing);
        self.set_link(IN_SYNC);
    }

    /// In which epoch's slots the intents of writes belong.
    pub(super) fn write_in(&self, epoch: &str) {
        *self.write_epoch.lock() = Some(epoch.to_owned());
    }

    /// Whether Begins fail.
    pub(super) fn refuse(&self, refuses: bool) {
        *self.refuses.lock() = refuses;
    }

    /// Makes this many Ends fail.
    pub(super) fn fail_ends(&self, failures: u32) {
        self.ends.lock().0 = failures;
    }

    /// How often End was asked for.
    pub(super) fn ends(&self) -> u32 {
        self.ends.lock().1
    }

    pub(super) fn has_left(&self) -> bool {
        *self.left.lock()
    }
}

impl Backplane for FakeBackplane {
    fn attach(&self, events: Arc<dyn PeerEvents>) -> Result<(), BackplaneError> {
        events.set_epoch("harness");
        events.set_link(IN_SYNC);
        *self.events.lock() = Some(events);
        Ok(())
    }

    fn ready_for_writes(&self) -> BoxFuture<'_, Result<(), BackplaneError>> {
        Box::pin(async move {
            self.failpoints.pass(At::ReadyForWrites).await;
            Ok(())
        })
    }

    fn begin_write<'a>(
        &'a self,
        _: &'a PeerWrite,
    ) -> BoxFuture<'a, Result<Option<String>, BackplaneError>> {
        Box::pin(async move {
            self.failpoints.pass(At::BeginOnBackplane).await;
            if *self.refuses.lock() {
                return Err(BackplaneError("the test says so".into()));
            }
            Ok(self.write_epoch.lock().clone())
        })
    }

    fn end_write<'a>(&'a self, _: &'a PeerWrite) -> BoxFuture<'a, Result<(), BackplaneError>> {
        Box::pin(async move {
            let mut ends = self.ends.lock();
            ends.1 += 1;
            if ends.0 > 0 {
                ends.0 -= 1;
                return Err(BackplaneError("the test says so".into()));
            }
            Ok(())
        })
    }

    fn invalidate_all(&self) -> BoxFuture<'_, Result<(), BackplaneError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        *self.left.lock() = true;
        Box::pin(std::future::ready(()))
    }
}
