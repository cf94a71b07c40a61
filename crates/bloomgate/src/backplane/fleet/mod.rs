//! A fleet of instances that keep one another in step through a log (section C of the protocol).
//!
//! A write is appended to the log and returns from its Begin once every member has applied it, or
//! can't refuse any more. A member refuses, and serves its caches as fresh, only under a lease,
//! which it renews with what it has applied; one that falls silent is fenced and its lease is
//! waited out. Nothing is concluded from an absence: a log or a table that was lost is another
//! *identity*, and every member resynchronises.
//!
//! - [`member`]: registers, follows the log, renews the lease.
//! - [`appender`] and [`acknowledgements`]: the writes of this process, many in one step.
//! - [`barrier`]: which members a write still waits for.
//! - [`copies`]: a complete gate from another member, instead of a scan.
//! - [`maintenance`]: fencing, removal, trimming.
//! - [`live_members`]: what a guard that is declared to be the only one asks first.

mod acknowledgements;
mod appender;
mod barrier;
mod copies;
mod live_members;
mod maintenance;
mod member;
mod record;
mod settings;
mod shared;
mod status;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use acknowledgements::AcknowledgementTask;
use appender::{AppendTask, Change, Request};
pub(crate) use live_members::live_member;
use member::Member;
pub use settings::FleetSettings;
use shared::Shared;

use crate::clock::Clock;
use crate::error::BackplaneError;
use crate::ports::{
    Backplane, CopyReader, CopyRequest, FleetLog, FleetStatus, LogIdentity, PeerEvents, PeerWrite,
};

/// Between two looks at whether the log has been settled.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// A member of a fleet.
#[derive(Debug)]
pub(crate) struct Fleet {
    shared: Arc<Shared>,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    requests: mpsc::UnboundedSender<Request>,
    member: JoinHandle<()>,
    writers: [JoinHandle<()>; 2],
}

impl Drop for Running {
    fn drop(&mut self) {
        self.member.abort();
        for task in &self.writers {
            task.abort();
        }
    }
}

impl Fleet {
    /// A member of the fleet of this log. `name` is the guard's.
    pub(crate) fn new(
        name: Arc<str>,
        log: Arc<dyn FleetLog>,
        settings: FleetSettings,
        clock: Clock,
    ) -> Self {
        let shared = Arc::new(Shared::new(name, log, settings, clock));
        Self { shared, running: Mutex::new(None) }
    }

    /// Appends a change, and waits for the members where it must; returns the identity that it
    /// holds under.
    async fn change(&self, change: Change) -> Result<LogIdentity, BackplaneError> {
        let stopped = || BackplaneError("the member has left its fleet".into());
        let requests = self.running.lock().as_ref().map(|running| running.requests.clone());
        let (reply, answer) = oneshot::channel();
        let since = self.shared.clock.now();
        let request = Request { change, since, reply };
        requests.ok_or_else(stopped)?.send(request).map_err(|_| stopped())?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }
}

impl Backplane for Fleet {
    fn attach(&self, events: Arc<dyn PeerEvents>) -> Result<(), BackplaneError> {
        let mut running = self.running.lock();
        if running.is_some() {
            return Err(BackplaneError("a guard is attached already".into()));
        }
        let (requests, received) = mpsc::unbounded_channel();
        let (pending, appended) = mpsc::unbounded_channel();
        let shared = &self.shared;
        let append = AppendTask { shared: Arc::clone(shared), requests: received, pending };
        let acknowledgements =
            AcknowledgementTask::new(Arc::clone(shared), appended, requests.downgrade());
        let member = Member::new(Arc::clone(shared), events);
        *running = Some(Running {
            requests,
            member: tokio::spawn(member.run()),
            writers: [tokio::spawn(append.run()), tokio::spawn(acknowledgements.run())],
        });
        Ok(())
    }

    /// Rule C25: until the log is settled, every Begin waits a lease. Waited for here, it keeps no
    /// transaction open.
    fn ready_for_writes(&self) -> BoxFuture<'_, Result<(), BackplaneError>> {
        Box::pin(async move {
            let shared = &self.shared;
            let until = shared.clock.now() + settings::waited_out(shared.settings.lease);
            let unsettled = || shared.latest.lock().as_ref().is_some_and(|view| !view.settled);
            while unsettled() && shared.clock.now() < until {
                shared.clock.sleep(LOOK_AGAIN_AFTER).await;
            }
            Ok(())
        })
    }

    /// Rule C19. A write that is dropped meanwhile may be in the log; it lapses there.
    fn begin_write<'a>(
        &'a self,
        write: &'a PeerWrite,
    ) -> BoxFuture<'a, Result<Option<String>, BackplaneError>> {
        Box::pin(async move {
            let identity = self.change(Change::Begin(write.clone())).await?;
            let epoch = identity.slot_epoch();
            self.shared.has_begun(write.write, identity, write.deadline);
            Ok(Some(epoch))
        })
    }

    /// Rule C26: an End that finds another identity than its Begin's repeats the barrier.
    fn end_write<'a>(&'a self, write: &'a PeerWrite) -> BoxFuture<'a, Result<(), BackplaneError>> {
        Box::pin(async move {
            loop {
                let identity = self.change(Change::End(write.clone())).await?;
                match self.shared.begun_under(write.write) {
                    Some(begun) if begun != identity => {
                        self.begin_write(write).await?;
                    }
                    _ => {
                        self.shared.has_ended(write.write);
                        return Ok(());
                    }
                }
            }
        })
    }

    fn begin_is_lost(&self, write: &PeerWrite) -> bool {
        self.shared.begin_is_lost(write.write)
    }

    fn invalidate_all(&self) -> BoxFuture<'_, Result<(), BackplaneError>> {
        Box::pin(async move { self.change(Change::InvalidateAll).await.map(|_identity| ()) })
    }

    fn copy_gate(
        &self,
        request: CopyRequest,
    ) -> BoxFuture<'_, Result<Option<Box<dyn CopyReader>>, BackplaneError>> {
        Box::pin(self.shared.ask_for_copy(request))
    }

    fn status(&self) -> Option<FleetStatus> {
        Some(self.shared.status())
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Some(mut running) = self.running.lock().take() else { return };
            running.member.abort();
            // A renewal of its own must not come after the row's removal.
            let _ = (&mut running.member).await;
            let registered = self.shared.registered.lock().take();
            if let Some((identity, incarnation)) = registered {
                let log = &self.shared.log;
                let remove = log.remove(&identity, self.shared.instance, incarnation);
                // A row that stays is fenced by whoever waits for it.
                let _ = self.shared.step("leave", remove).await;
            }
        })
    }
}
