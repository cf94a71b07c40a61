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
//! - A predecessor that was killed looks like a neighbour until its last beat is too old. It is
//!   told from a live one by its beats, which don't go on.
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

use crate::answer::Why;
use crate::clock::{Clock, Moment};
use crate::error::BackplaneError;
use crate::key::KeyBytes;
use crate::ports::{Backplane, Neighbour, Standing, Store, Token};

/// Between two beats.
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// A member whose last beat is older is gone.
const GONE_AFTER: Duration = Duration::from_secs(3);
/// By when a live neighbour must have noticed a newcomer: its next beat, and slack.
const NOTICED_WITHIN: Duration = Duration::from_millis(2_500);

/// One instance, alone in its namespace.
#[derive(Debug)]
pub struct Alone {
    standing: watch::Receiver<Standing>,
    watch: Option<Watch>,
}

/// The part that watches for others.
#[derive(Debug)]
struct Watch {
    store: Arc<dyn Store>,
    namespace: Arc<str>,
    member: Token,
    clock: Clock,
    budget: Duration,
    /// From when on writes may begin; `None` until the first beat has got through.
    writes_from: watch::Receiver<Option<Moment>>,
    beating: Mutex<Option<JoinHandle<()>>>,
}

impl Alone {
    /// Alone because nothing is shared.
    #[must_use]
    pub fn without_store() -> Self {
        Self { standing: watch::channel(Standing::Current).1, watch: None }
    }

    /// Alone unless `store` says otherwise. Starts a task in the current tokio runtime, which ends
    /// with this value. `write_window` is the guard's W, `budget` the longest wait for one beat.
    #[must_use]
    pub fn watching(
        store: Arc<dyn Store>,
        namespace: &str,
        write_window: Duration,
        budget: Duration,
        clock: Clock,
    ) -> Self {
        let (standing_out, standing) = watch::channel(Standing::Doubtful(Why::Joining));
        let (writes_out, writes_from) = watch::channel(None);
        let namespace: Arc<str> = namespace.into();
        let member = Token::fresh();
        let heart = Heart {
            store: Arc::clone(&store),
            namespace: Arc::clone(&namespace),
            member,
            clock: clock.clone(),
            budget,
            write_window,
            standing: standing_out,
            writes_from: writes_out,
            first_seen: HashMap::new(),
            last_live_neighbour: None,
        };
        let beating = Mutex::new(Some(tokio::spawn(heart.beat_for_ever())));
        let watch = Watch { store, namespace, member, clock, budget, writes_from, beating };
        Self { standing, watch: Some(watch) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(task) = self.beating.lock().take() {
            task.abort();
        }
    }
}

impl Backplane for Alone {
    fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.clone()
    }

    fn until_writable(&self) -> BoxFuture<'_, Result<(), BackplaneError>> {
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

    fn announce<'a>(
        &'a self,
        _key: &'a KeyBytes,
        _write: Token,
    ) -> BoxFuture<'a, Result<(), BackplaneError>> {
        self.until_writable()
    }

    fn conclude<'a>(&'a self, _key: &'a KeyBytes, _write: Token) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Some(watch) = &self.watch else { return };
            if let Some(task) = watch.beating.lock().take() {
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
struct Heart {
    store: Arc<dyn Store>,
    namespace: Arc<str>,
    member: Token,
    clock: Clock,
    budget: Duration,
    write_window: Duration,
    standing: watch::Sender<Standing>,
    writes_from: watch::Sender<Option<Moment>>,
    /// Neighbours seen at the last beat, with the beats that each had when first seen.
    first_seen: HashMap<String, u64>,
    last_live_neighbour: Option<Moment>,
}

impl Heart {
    async fn beat_for_ever(mut self) {
        let mut last = self.clock.now();
        loop {
            let now = self.clock.now();
            // This process stood still for so long that another may have come and gone.
            let missed = now.since(last) > GONE_AFTER;
            last = now;
            let beat = self.store.beat(&self.namespace, self.member, GONE_AFTER);
            match self.clock.timeout(self.budget, beat).await {
                Ok(Ok(neighbours)) => self.heard(&neighbours, missed),
                Ok(Err(error)) => tracing::debug!(%error, "a beat failed"),
                Err(_) => tracing::debug!("a beat was not answered in time"),
            }
            self.clock.sleep(BEAT_EVERY).await;
        }
    }

    fn heard(&mut self, neighbours: &[Neighbour], missed: bool) {
        let now = self.clock.now();
        let joining = self.writes_from.borrow().is_none();
        let mut seen = HashMap::with_capacity(neighbours.len());
        for neighbour in neighbours {
            let first = self.first_seen.get(&neighbour.member).copied();
            // One that turns up later is live; one that was there before us shows it by beating.
            let live = first.map_or(!joining, |first| neighbour.beats > first);
            if live {
                self.last_live_neighbour = Some(now);
            }
            seen.insert(neighbour.member.clone(), first.unwrap_or(neighbour.beats));
        }
        self.first_seen = seen;
        let window_is_open = self
            .last_live_neighbour
            .is_some_and(|last| now.since(last) < self.write_window + GONE_AFTER);
        let standing = if neighbours.is_empty() && !window_is_open && !missed {
            Standing::Current
        } else {
            Standing::Doubtful(Why::NotAlone)
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
            let wait = if neighbours.is_empty() { Duration::ZERO } else { NOTICED_WITHIN };
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

    /// Lets the hearts beat for so many seconds.
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

    fn standing_of(instance: &Alone) -> Standing {
        *instance.standing().borrow()
    }

    #[tokio::test]
    async fn a_second_instance_opens_both_and_the_last_one_waits_for_the_write_window() {
        let (clock, time) = Clock::manual();
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let first = alone(&store, &clock);
        assert_eq!(standing_of(&first), Standing::Doubtful(Why::Joining));
        pass(&time, 2).await;
        assert_eq!(standing_of(&first), Standing::Current);
        let second = alone(&store, &clock);
        pass(&time, 2).await;
        assert_eq!(standing_of(&first), Standing::Doubtful(Why::NotAlone));
        assert_eq!(standing_of(&second), Standing::Doubtful(Why::NotAlone));
        second.leave().await;
        pass(&time, 20).await;
        assert_eq!(standing_of(&first), Standing::Doubtful(Why::NotAlone), "W is not over");
        pass(&time, 20).await;
        assert_eq!(standing_of(&first), Standing::Current);
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
        assert_eq!(standing_of(&next), Standing::Doubtful(Why::NotAlone));
        pass(&time, 4).await;
        assert_eq!(standing_of(&next), Standing::Current);
    }

    #[tokio::test]
    async fn an_instance_that_stood_still_does_not_trust_what_it_knew() {
        let (clock, time) = Clock::manual();
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let paused = alone(&store, &clock);
        pass(&time, 2).await;
        let mut standing = paused.standing();
        standing.mark_unchanged();
        time.advance(GONE_AFTER + BEAT_EVERY);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert_eq!(standing_of(&paused), Standing::Doubtful(Why::NotAlone));
        pass(&time, 2).await;
        assert_eq!(standing_of(&paused), Standing::Current);
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
            async move { second.announce(&KeyBytes::of(&1_i64), Token::fresh()).await }
        });
        for _ in 0..40 {
            tokio::task::yield_now().await;
        }
        assert!(!write.is_finished());
        pass(&time, 3).await;
        assert!(write.is_finished());
        assert_eq!(standing_of(&first), Standing::Doubtful(Why::NotAlone));
    }
}
