//! The backplane of a single instance, which notices when it isn't alone.
//!
//! It says so to the shared cache once a second. What it guards against is scaling out by
//! accident; it is not a way to run several instances:
//!
//! - A second live instance opens the gates of both, for as long as both are live. The one that
//!   is left waits for the write window to pass, so that whatever the other had under way is
//!   over, and rebuilds.
//! - A newcomer that finds another one holds its first writes back until that one must have
//!   noticed.
//! - A predecessor that was killed looks like a peer until its last heartbeat is too old. It is
//!   told from a live one by its heartbeats, which don't go on.
//! - An instance that itself stood still for longer than a member may be silent can't know who came
//!   and went meanwhile: its gate opens and is rebuilt.
//! - While the shared cache is unreachable, a standing that was won is kept: an outage of Redis
//!   must not open the gate of an instance that is alone. Writes fail meanwhile, unless the user
//!   chose otherwise.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::answer::OpenReason;
use crate::clock::{Clock, Moment};
use crate::error::BackplaneError;
use crate::key::KeyBytes;
use crate::ports::{Backplane, InstanceId, LinkState, Peer, Store, WriteId};

/// Between two heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// A member whose last heartbeat is older is gone.
const GONE_AFTER: Duration = Duration::from_secs(3);
/// By when a live peer must have noticed a newcomer: its next heartbeat, and slack.
const NOTICED_WITHIN: Duration = Duration::from_millis(2_500);

/// One instance, alone in its namespace.
#[derive(Debug)]
pub struct Alone {
    standing: watch::Receiver<LinkState>,
    watch: Option<Watch>,
}

/// The part that watches for others.
#[derive(Debug)]
struct Watch {
    store: Arc<dyn Store>,
    namespace: Arc<str>,
    member: InstanceId,
    clock: Clock,
    budget: Duration,
    /// From when on writes may begin; `None` until the first heartbeat has got through.
    writes_from: watch::Receiver<Option<Moment>>,
    heartbeats_task: Mutex<Option<JoinHandle<()>>>,
}

impl Alone {
    /// Alone because nothing is shared.
    #[must_use]
    pub fn without_store() -> Self {
        Self { standing: watch::channel(LinkState::InSync).1, watch: None }
    }

    /// Alone unless `store` says otherwise. Starts a task in the current tokio runtime, which ends
    /// with this value. `write_window` is the guard's W, `budget` the longest wait for one heartbeat.
    #[must_use]
    pub fn watching(
        store: Arc<dyn Store>,
        namespace: &str,
        write_window: Duration,
        budget: Duration,
        clock: Clock,
    ) -> Self {
        let (standing_out, standing) = watch::channel(LinkState::OutOfSync(OpenReason::Joining));
        let (writes_out, writes_from) = watch::channel(None);
        let namespace: Arc<str> = namespace.into();
        let member = InstanceId::fresh();
        let heartbeat = Heartbeat {
            store: Arc::clone(&store),
            namespace: Arc::clone(&namespace),
            member,
            clock: clock.clone(),
            budget,
            write_window,
            standing: standing_out,
            writes_from: writes_out,
            first_seen: HashMap::new(),
            last_live_peer: None,
        };
        let heartbeats_task = Mutex::new(Some(tokio::spawn(heartbeat.run())));
        let watch = Watch { store, namespace, member, clock, budget, writes_from, heartbeats_task };
        Self { standing, watch: Some(watch) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(task) = self.heartbeats_task.lock().take() {
            task.abort();
        }
    }
}

impl Backplane for Alone {
    fn link_state(&self) -> watch::Receiver<LinkState> {
        self.standing.clone()
    }

    fn ready_for_writes(&self) -> BoxFuture<'_, Result<(), BackplaneError>> {
        Box::pin(async move {
            let Some(watch) = &self.watch else { return Ok(()) };
            let mut writes_from = watch.writes_from.clone();
            // The common case: joined long ago.
            let known = *writes_from.borrow_and_update();
            let from = match known {
                Some(from) => Some(from),
                None => {
                    let joined = writes_from.wait_for(Option::is_some);
                    let waited = watch.clock.timeout(watch.budget, joined).await;
                    waited.ok().and_then(Result::ok).and_then(|from| *from)
                }
            };
            match from {
                Some(from) => {
                    watch.clock.sleep_until(from).await;
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

    fn begin_write<'a>(
        &'a self,
        _key: &'a KeyBytes,
        _write: WriteId,
    ) -> BoxFuture<'a, Result<(), BackplaneError>> {
        self.ready_for_writes()
    }

    fn end_write<'a>(&'a self, _key: &'a KeyBytes, _write: WriteId) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Some(watch) = &self.watch else { return };
            if let Some(task) = watch.heartbeats_task.lock().take() {
                task.abort();
            }
            let leaving = watch.store.leave(&watch.namespace, watch.member);
            if !matches!(watch.clock.timeout(watch.budget, leaving).await, Ok(Ok(()))) {
                tracing::debug!("could not leave the list of instances; the entry will run out");
            }
        })
    }
}

/// What runs in the task.
struct Heartbeat {
    store: Arc<dyn Store>,
    namespace: Arc<str>,
    member: InstanceId,
    clock: Clock,
    budget: Duration,
    write_window: Duration,
    standing: watch::Sender<LinkState>,
    writes_from: watch::Sender<Option<Moment>>,
    /// Neighbours seen at the last heartbeat, with the heartbeats that each had when first seen.
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
            let heartbeat = self.store.heartbeat(&self.namespace, self.member, GONE_AFTER);
            match self.clock.timeout(self.budget, heartbeat).await {
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
            let first = self.first_seen.get(&peer.member).copied();
            // One that turns up later is live; one that was there before us shows it by heartbeats_task.
            let live = first.map_or(!joining, |first| peer.heartbeats > first);
            if live {
                self.last_live_peer = Some(now);
            }
            seen.insert(peer.member.clone(), first.unwrap_or(peer.heartbeats));
        }
        self.first_seen = seen;
        let window_is_open = self
            .last_live_peer
            .is_some_and(|last| now.since(last) < self.write_window + GONE_AFTER);
        let standing = if peers.is_empty() && !window_is_open && !missed {
            LinkState::InSync
        } else {
            LinkState::OutOfSync(OpenReason::NotAlone)
        };
        self.standing.send_if_modified(|current| {
            let changed = *current != standing;
            if changed {
                tracing::warn!(namespace = &*self.namespace, ?standing, "the standing changed");
            }
            *current = standing;
            changed
        });
        if joining {
            let wait = if peers.is_empty() { Duration::ZERO } else { NOTICED_WITHIN };
            self.writes_from.send_replace(Some(now + wait));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualTime;
    use crate::shared_cache::MemoryStore;

    const W: Duration = Duration::from_secs(30);

    fn alone(store: &Arc<MemoryStore>, clock: &Clock) -> Alone {
        let store = Arc::clone(store) as Arc<dyn Store>;
        Alone::watching(store, "test", W, Duration::from_millis(100), clock.clone())
    }

    /// Lets the hearts heartbeat for so many seconds.
    async fn pass(time: &ManualTime, seconds: u32) {
        for _ in 0..seconds * 4 {
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            time.advance(Duration::from_millis(250));
        }
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    fn link_state_of(instance: &Alone) -> LinkState {
        *instance.link_state().borrow()
    }

    #[tokio::test]
    async fn a_second_instance_opens_both_and_the_last_one_waits_for_the_write_window() {
        let (clock, time) = Clock::manual();
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let first = alone(&store, &clock);
        assert_eq!(link_state_of(&first), LinkState::OutOfSync(OpenReason::Joining));
        pass(&time, 2).await;
        assert_eq!(link_state_of(&first), LinkState::InSync);
        let second = alone(&store, &clock);
        pass(&time, 2).await;
        assert_eq!(link_state_of(&first), LinkState::OutOfSync(OpenReason::NotAlone));
        assert_eq!(link_state_of(&second), LinkState::OutOfSync(OpenReason::NotAlone));
        second.leave().await;
        pass(&time, 20).await;
        assert_eq!(
            link_state_of(&first),
            LinkState::OutOfSync(OpenReason::NotAlone),
            "W is not over"
        );
        pass(&time, 20).await;
        assert_eq!(link_state_of(&first), LinkState::InSync);
    }

    #[tokio::test]
    async fn a_killed_predecessor_is_waited_out_without_the_write_window() {
        let (clock, time) = Clock::manual();
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let killed = alone(&store, &clock);
        pass(&time, 2).await;
        drop(killed);
        let next = alone(&store, &clock);
        pass(&time, 1).await;
        assert_eq!(link_state_of(&next), LinkState::OutOfSync(OpenReason::NotAlone));
        pass(&time, 4).await;
        assert_eq!(link_state_of(&next), LinkState::InSync);
    }

    #[tokio::test]
    async fn an_instance_that_stood_still_does_not_trust_what_it_knew() {
        let (clock, time) = Clock::manual();
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let paused = alone(&store, &clock);
        pass(&time, 2).await;
        let mut standing = paused.link_state();
        standing.mark_unchanged();
        time.advance(GONE_AFTER + HEARTBEAT_INTERVAL);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert_eq!(link_state_of(&paused), LinkState::OutOfSync(OpenReason::NotAlone));
        pass(&time, 2).await;
        assert_eq!(link_state_of(&paused), LinkState::InSync);
        assert!(standing.has_changed().unwrap());
    }

    #[tokio::test]
    async fn a_newcomer_writes_only_once_the_others_must_have_noticed() {
        let (clock, time) = Clock::manual();
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let first = alone(&store, &clock);
        pass(&time, 2).await;
        let second = Arc::new(alone(&store, &clock));
        let write = tokio::spawn({
            let second = Arc::clone(&second);
            async move { second.begin_write(&KeyBytes::of(&1_i64), WriteId::fresh()).await }
        });
        for _ in 0..40 {
            tokio::task::yield_now().await;
        }
        assert!(!write.is_finished());
        pass(&time, 3).await;
        assert!(write.is_finished());
        assert_eq!(link_state_of(&first), LinkState::OutOfSync(OpenReason::NotAlone));
    }
}
