//! A watch for other instances in a namespace that has no backplane.
//!
//! It sends a heartbeat to the shared cache once a second. What it guards against is scaling out
//! by accident; it is not a way to run several instances:
//!
//! - A second live instance opens the gates of both, for as long as both are live. The one that
//!   is left waits for the write window to pass, so that every write of the other is over, and
//!   rebuilds.
//! - A new instance that finds another one holds its first writes back until that one must have
//!   noticed.
//! - A predecessor that was killed looks like a peer until its last heartbeat is too old. Its
//!   heartbeats, which don't go on, tell it from a live one.
//! - An instance that itself stood still for longer than a member may be silent can't know which
//!   others came and went meanwhile: its gate opens and is rebuilt.
//! - While the shared cache is unreachable, a link in sync stays so: an outage of Redis must not
//!   open the gate of an instance that is alone. Writes fail meanwhile, unless the user chose
//!   otherwise.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::answer::OpenReason;
use crate::clock::{Clock, Moment};
use crate::error::BackplaneError;
use crate::ports::{Backplane, InstanceId, LinkState, Peer, PeerEvents, PeerRegistry, PeerWrite};

/// Between two heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// A member whose last heartbeat is older is gone.
const GONE_AFTER: Duration = Duration::from_secs(3);
/// By when a live peer must have noticed a new instance: its next heartbeat, with a margin.
const NOTICED_WITHIN: Duration = Duration::from_millis(2_500);

/// What the watch needs to know of its guard.
#[derive(Clone, Debug)]
pub(crate) struct PeerWatchSettings {
    pub(crate) namespace: Arc<str>,
    /// The guard's W.
    pub(crate) write_window: Duration,
    /// Longest wait for one heartbeat.
    pub(crate) timeout: Duration,
}

/// A single instance that notices when it isn't.
#[derive(Debug)]
pub(crate) struct PeerWatch {
    registry: Arc<dyn PeerRegistry>,
    settings: PeerWatchSettings,
    instance: InstanceId,
    clock: Clock,
    /// From when on writes may begin; `None` until the first heartbeat has got through.
    writes_from: watch::Sender<Option<Moment>>,
    task: Mutex<Option<JoinHandle<()>>>,
    events: Mutex<Option<Arc<dyn PeerEvents>>>,
}

impl PeerWatch {
    pub(crate) fn new(
        registry: Arc<dyn PeerRegistry>,
        settings: PeerWatchSettings,
        clock: Clock,
    ) -> Self {
        Self {
            registry,
            settings,
            instance: InstanceId::fresh(),
            clock,
            writes_from: watch::Sender::new(None),
            task: Mutex::new(None),
            events: Mutex::new(None),
        }
    }
}

impl Drop for PeerWatch {
    fn drop(&mut self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }
}

impl Backplane for PeerWatch {
    fn attach(&self, events: Arc<dyn PeerEvents>) -> Result<(), BackplaneError> {
        let mut task = self.task.lock();
        if task.is_some() {
            return Err(BackplaneError("a guard is attached already".into()));
        }
        *self.events.lock() = Some(Arc::clone(&events));
        let heartbeat = Heartbeat {
            registry: Arc::clone(&self.registry),
            settings: self.settings.clone(),
            instance: self.instance,
            clock: self.clock.clone(),
            events,
            in_sync: false,
            writes_from: self.writes_from.clone(),
            first_seen: HashMap::new(),
            last_live_peer: None,
        };
        *task = Some(tokio::spawn(heartbeat.run()));
        Ok(())
    }

    fn ready_for_writes(&self) -> BoxFuture<'_, Result<(), BackplaneError>> {
        Box::pin(async move {
            let mut writes_from = self.writes_from.subscribe();
            // The common case: joined long ago.
            let known = *writes_from.borrow_and_update();
            let from = match known {
                Some(from) => Some(from),
                None => {
                    let joined = writes_from.wait_for(Option::is_some);
                    let waited = self.clock.timeout(self.settings.timeout, joined).await;
                    waited.ok().and_then(Result::ok).and_then(|from| *from)
                }
            };
            match from {
                Some(from) => {
                    self.clock.sleep_until(from).await;
                    Ok(())
                }
                None => Err(BackplaneError(
                    "the shared cache has not been reached yet, so it isn't known whether another \
                     instance is live"
                        .into(),
                )),
            }
        })
    }

    fn begin_write<'a>(&'a self, _: &'a PeerWrite) -> BoxFuture<'a, Result<(), BackplaneError>> {
        self.ready_for_writes()
    }

    fn end_write<'a>(&'a self, _: &'a PeerWrite) -> BoxFuture<'a, Result<(), BackplaneError>> {
        Box::pin(ready(Ok(())))
    }

    fn invalidate_all(&self) -> BoxFuture<'_, Result<(), BackplaneError>> {
        // A peer serves nothing from its local cache while this instance is live.
        Box::pin(ready(Ok(())))
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(task) = self.task.lock().take() {
                task.abort();
            }
            if let Some(events) = self.events.lock().take() {
                events.set_link(LinkState::OutOfSync(OpenReason::ShuttingDown));
            }
            let leaving = self.registry.leave(&self.settings.namespace, self.instance);
            if !matches!(self.clock.timeout(self.settings.timeout, leaving).await, Ok(Ok(()))) {
                tracing::debug!("could not leave the list of instances; the entry will expire");
            }
        })
    }
}

/// The part of the watch that runs in a task.
struct Heartbeat {
    registry: Arc<dyn PeerRegistry>,
    settings: PeerWatchSettings,
    instance: InstanceId,
    clock: Clock,
    events: Arc<dyn PeerEvents>,
    in_sync: bool,
    writes_from: watch::Sender<Option<Moment>>,
    /// Peers seen at the last heartbeat, with the heartbeats that each had when first seen.
    first_seen: HashMap<String, u64>,
    last_live_peer: Option<Moment>,
}

impl Heartbeat {
    async fn run(mut self) {
        let mut last = self.clock.now();
        loop {
            let now = self.clock.now();
            // This process stood still for so long that another may have come and gone.
            let missed = now.since(last) > GONE_AFTER;
            last = now;
            let heartbeat =
                self.registry.heartbeat(&self.settings.namespace, self.instance, GONE_AFTER);
            match self.clock.timeout(self.settings.timeout, heartbeat).await {
                Ok(Ok(peers)) => self.heard(&peers, missed),
                Ok(Err(error)) => tracing::debug!(%error, "a heartbeat failed"),
                Err(_) => tracing::debug!("a heartbeat was not answered in time"),
            }
            self.clock.sleep(HEARTBEAT_INTERVAL).await;
        }
    }

    fn heard(&mut self, peers: &[Peer], missed: bool) {
        let now = self.clock.now();
        let joining = self.writes_from.borrow().is_none();
        let mut seen = HashMap::with_capacity(peers.len());
        for peer in peers {
            let first = self.first_seen.get(&peer.instance).copied();
            // One that turns up later is live; one that was there before us shows it by its
            // heartbeats, which go on.
            let live = first.map_or(!joining, |first| peer.heartbeats > first);
            if live {
                self.last_live_peer = Some(now);
            }
            seen.insert(peer.instance.clone(), first.unwrap_or(peer.heartbeats));
        }
        self.first_seen = seen;
        let window_is_open = self
            .last_live_peer
            .is_some_and(|last| now.since(last) < self.settings.write_window + GONE_AFTER);
        self.set_in_sync(peers.is_empty() && !window_is_open && !missed, joining);
        if joining {
            let wait = if peers.is_empty() { Duration::ZERO } else { NOTICED_WITHIN };
            self.writes_from.send_replace(Some(now + wait));
        }
    }

    fn set_in_sync(&mut self, in_sync: bool, joining: bool) {
        if self.in_sync == in_sync && !joining {
            return;
        }
        self.in_sync = in_sync;
        let guard = &*self.settings.namespace;
        if in_sync {
            if !joining {
                // What the others wrote was never delivered.
                self.events.void(OpenReason::NotAlone);
                tracing::info!(guard, "no other instance is live in the namespace any more");
            }
            self.events.set_link(LinkState::InSync { until: Moment::NEVER });
        } else {
            tracing::warn!(
                guard,
                "another instance may be live in the namespace, without a backplane: the gate \
                 is open"
            );
            self.events.set_link(LinkState::OutOfSync(OpenReason::NotAlone));
        }
    }
}

#[cfg(test)]
#[path = "tests/peer_watch.rs"]
mod tests;
