//! Rule C30: the backplane of a guard that its user declares to be the only instance.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::fleet::live_member;
use crate::answer::OpenReason;
use crate::clock::{Clock, Moment};
use crate::error::{BackplaneError, ConfigError, StoreError, StoreErrorKind};
use crate::ports::{Backplane, FleetLog, LinkState, PeerEvents, PeerWrite};

/// Between two attempts to reach the server.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

/// In sync for ever, without a lease, over a server that could have other instances. It ends the log
/// and the table that an earlier fleet left there: entries that were cached beside other instances,
/// or before their writes, are not read again.
#[derive(Debug)]
pub(crate) struct DeclaredSingle {
    declaration: Arc<Declaration>,
    /// True once the epoch of the slots is known.
    declared: watch::Sender<bool>,
    epoch: Mutex<Option<String>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Declaration {
    name: Arc<str>,
    log: Arc<dyn FleetLog>,
    timeout: Duration,
    clock: Clock,
}

/// What came of a declaration.
enum Declared {
    /// The epoch of the slots.
    Alone(String),
    /// A live member, by label and id.
    Beside(String),
}

impl DeclaredSingle {
    /// Looks for live members, and waits for the lease of one that was killed. `name` is the guard's.
    ///
    /// # Errors
    /// When the namespace has a live member. A server that can't be reached is asked later.
    pub(crate) async fn open(
        name: Arc<str>,
        log: Arc<dyn FleetLog>,
        timeout: Duration,
        clock: Clock,
    ) -> Result<Self, ConfigError> {
        let declaration = Arc::new(Declaration { name, log, timeout, clock });
        let epoch = match declaration.make().await {
            Ok(Declared::Alone(epoch)) => Some(epoch),
            Ok(Declared::Beside(member)) => {
                let name = &declaration.name;
                let problem =
                    format!("the namespace {name:?} has a live member of a fleet, {member}");
                let fix = "stop the others first, or join them by leaving single_instance out";
                return Err(ConfigError::setting("single_instance", problem, fix));
            }
            // The declaration is meant for such an outage, too.
            Err(error) => {
                let guard = &*declaration.name;
                tracing::warn!(guard, %error, "whether there are other instances is checked later");
                None
            }
        };
        Ok(Self {
            declaration,
            declared: watch::Sender::new(false),
            epoch: Mutex::new(epoch),
            task: Mutex::new(None),
        })
    }
}

impl Declaration {
    async fn make(&self) -> Result<Declared, StoreError> {
        if let Some(member) = live_member(&*self.log, self.timeout, &self.clock).await? {
            return Ok(Declared::Beside(member));
        }
        let declared = self.clock.timeout(self.timeout, self.log.declare_single()).await;
        let epoch = declared.unwrap_or_else(|_elapsed| {
            let message = format!("no answer within {:?}", self.timeout);
            Err(StoreError::new(StoreErrorKind::TimedOut, message))
        });
        epoch.map(Declared::Alone)
    }

    /// Declares once the server can be reached. Beside live members the gate is open.
    async fn keep_trying(
        self: Arc<Self>,
        events: Arc<dyn PeerEvents>,
        declared: watch::Sender<bool>,
    ) {
        let mut beside = false;
        loop {
            self.clock.sleep(AGAIN_AFTER).await;
            match self.make().await {
                Ok(Declared::Alone(epoch)) => {
                    events.set_epoch(&epoch);
                    if beside {
                        events.void(OpenReason::Resyncing);
                        events.set_link(LinkState::InSync { until: Moment::NEVER });
                    }
                    declared.send_replace(true);
                    return;
                }
                Ok(Declared::Beside(member)) => {
                    if !std::mem::replace(&mut beside, true) {
                        let guard = &*self.name;
                        tracing::error!(
                            guard,
                            member,
                            "declared to be the only instance, and another one is live: the gate is open"
                        );
                        events.set_link(LinkState::OutOfSync(OpenReason::LinkLost));
                    }
                }
                // The shared cache's own log line tells of an outage.
                Err(error) => tracing::debug!(%error, "other instances can't be looked for"),
            }
        }
    }
}

impl Drop for DeclaredSingle {
    fn drop(&mut self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }
}

impl Backplane for DeclaredSingle {
    fn attach(&self, events: Arc<dyn PeerEvents>) -> Result<(), BackplaneError> {
        let mut task = self.task.lock();
        if task.is_some() || *self.declared.borrow() {
            return Err(BackplaneError("a guard is attached already".into()));
        }
        events.set_link(LinkState::InSync { until: Moment::NEVER });
        match self.epoch.lock().take() {
            Some(epoch) => {
                events.set_epoch(&epoch);
                self.declared.send_replace(true);
            }
            None => {
                let declaration = Arc::clone(&self.declaration);
                let trying = declaration.keep_trying(events, self.declared.clone());
                *task = Some(tokio::spawn(trying));
            }
        }
        Ok(())
    }

    /// A write must not miss the slots of an epoch that isn't known yet.
    fn begin_write<'a>(
        &'a self,
        _: &'a PeerWrite,
    ) -> BoxFuture<'a, Result<Option<String>, BackplaneError>> {
        let declared = *self.declared.borrow();
        Box::pin(ready(declared.then_some(None).ok_or_else(|| {
            let message = "the shared cache has not been reached yet, or has other live instances";
            BackplaneError(message.into())
        })))
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

#[cfg(test)]
#[path = "tests/declared_single.rs"]
mod tests;
