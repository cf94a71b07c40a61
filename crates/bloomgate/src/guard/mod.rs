//! The façade: the paths of a request and of a write, from end to end.

mod builder;
mod codec;
mod copy;
mod create;
mod gate_only;
mod handle;
mod invalidate;
mod lease;
mod link_choice;
mod local_view;
mod open_write;
mod path;
mod peer_events;
mod readiness;
mod rebuild;
mod sentinel_budget;
mod settings;
mod shared_cache_bypass;
mod slots;
mod start;
mod status;
#[cfg(test)]
mod tests;
mod write;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::answer::{Answer, Verdict};
use crate::clock::{Clock, Moment};
use crate::error::{ReadError, RebuildError, WriteError, WriteFailure};
use crate::flight::Flights;
use crate::gate::LiveGate;
use crate::key::{Key, KeyBytes};
use crate::loader::LimitedLoader;
use crate::ports::Backplane;
use crate::shared_cache::SharedCache;
use crate::telemetry::{Counts, Instances};
use crate::warm_up::Progress;

pub use builder::GuardBuilder;
pub use create::{Admit, Admitted};
pub use gate_only::{GateOnly, GuardKind};
pub use handle::WriteHandle;
pub use settings::OnStoreFailure;

use local_view::LocalView;
use open_write::Kind;
use path::Outcome;
use rebuild::RebuildRequests;
use sentinel_budget::SentinelBudget;
use settings::Settings;
use shared_cache_bypass::SharedCacheBypass;
use slots::Slots;

/// A value that the guard caches: anything that goes to JSON and back.
///
/// The shared cache holds it as JSON under a schema id that is part of the slot's name; see
/// [`GuardBuilder::schema`].
pub trait Value: serde::Serialize + serde::de::DeserializeOwned + Send + Sync + 'static {}

impl<T: serde::Serialize + serde::de::DeserializeOwned + Send + Sync + 'static> Value for T {}

/// The guard: a gate, two caches and a loader, in that order. Cheap to clone.
///
/// Without a type of values it is a gate alone, see [`Guard::gate_only`]. See the
/// [crate's documentation](crate) for the path of a request.
pub struct Guard<K, V = GateOnly>(Arc<Inner<K, V>>);

impl<K, V> Clone for Guard<K, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K, V> fmt::Debug for Guard<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("name", &self.0.name).finish_non_exhaustive()
    }
}

/// A task that ends with its owner.
#[derive(Debug)]
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The writes that are running; those that merely wait for W to pass are not among them.
#[derive(Clone, Copy, Debug, Default)]
struct RunningWrites {
    running: usize,
    /// True once no new ones are taken.
    closed: bool,
}

pub(crate) struct Inner<K, V> {
    name: Arc<str>,
    settings: Settings,
    forced_open: bool,
    started: Moment,
    gate: Arc<LiveGate>,
    local: Arc<LocalView<K, V>>,
    flights: Arc<Flights<Outcome<V>>>,
    shared: Option<Arc<SharedCache>>,
    slots: Arc<Slots>,
    bypass: SharedCacheBypass,
    sentinels: SentinelBudget,
    loader: LimitedLoader<K, V>,
    backplane: Arc<dyn Backplane>,
    instances: Instances,
    clock: Clock,
    counts: Arc<Counts>,
    progress: Arc<Progress>,
    rebuilds: RebuildRequests,
    /// True once the guard has been ready.
    ready: AtomicBool,
    /// Layers that stand before a route.
    guarded_routes: AtomicU64,
    running_writes: watch::Sender<RunningWrites>,
    _background: Vec<AbortOnDrop>,
}

impl<K: Key, V: Value> Guard<K, V> {
    /// Begins to describe a guard. `name` is the namespace of its keys in the shared cache, and
    /// stands in its log lines: 1 to 64 of `a-z`, `0-9`, `-`, `_`, `.`.
    pub fn builder(name: impl Into<String>) -> GuardBuilder<K, V> {
        GuardBuilder::new(name.into())
    }

    /// The row with this key, from the nearest module that has it.
    ///
    /// May be dropped at any await: what it began for others goes on.
    ///
    /// # Errors
    /// When neither a cache nor the database could answer within the budgets. An error says
    /// nothing about whether the row exists.
    pub async fn get(&self, key: &K) -> Result<Answer<V>, ReadError> {
        match self.0.check(key) {
            Verdict::Absent => Ok(Answer::Absent(crate::answer::Tier::Gate)),
            Verdict::Maybe | Verdict::Unknown(_) => self.0.answer(key).await,
        }
    }

    /// The rows with these keys, in their order. As many are under way at a time as the loader
    /// has permits.
    ///
    /// # Errors
    /// The first error of any key.
    pub async fn get_many(&self, keys: &[K]) -> Result<Vec<Answer<V>>, ReadError> {
        // By number: a closure that takes a reference makes a future that no task may be spawned with.
        futures_util::stream::iter(0..keys.len())
            .map(|number| self.get(&keys[number]))
            .buffered(self.0.settings.max_concurrent_loads)
            .try_collect()
            .await
    }

    /// Past the gate: for a caller that has had the verdict already, and counted it.
    #[cfg(feature = "tower")]
    pub(crate) async fn answer(&self, key: &K) -> Result<Answer<V>, ReadError> {
        self.0.answer(key).await
    }
}

impl<K: Key> Guard<K> {
    /// Begins to describe a guard that is a gate alone: it needs a source, and neither a type of
    /// values nor a loader.
    ///
    /// ```
    /// use bloomgate::{Guard, Verdict, warm_up};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let guard = Guard::gate_only("names").source(warm_up::Keys::new([1_i64, 2])).build().await?;
    /// # while !guard.is_ready() { tokio::task::yield_now().await }
    /// assert_eq!(guard.check(&1), Verdict::Maybe);
    /// assert_eq!(guard.check(&7), Verdict::Absent);
    /// # Ok(()) }
    /// ```
    pub fn gate_only(name: impl Into<String>) -> GuardBuilder<K, GateOnly> {
        GuardBuilder::new(name.into())
    }
}

impl<K: Key, V: Send + Sync + 'static> Guard<K, V> {
    /// The gate's verdict, counted. Allocates nothing, waits for nothing; tens of nanoseconds.
    pub fn check(&self, key: &K) -> Verdict {
        self.0.check(key)
    }

    /// A layer was put before its first service.
    #[cfg(feature = "tower")]
    pub(crate) fn count_layer(&self) {
        self.0.guarded_routes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    /// Writes a row whose key the caller chose: an insert or an upsert.
    ///
    /// Begin, `run`, End; `run` starts once every cache and every gate knows that the key is being
    /// written, and goes on in a task of its own if the caller goes away. It is cut off shortly
    /// before the write window (see [`GuardBuilder::write_window`]) is over. `run` must not begin
    /// anything that goes on writing after it has returned.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn write<T, E, F>(&self, key: K, run: F) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: WriteFailure + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        write::write(&self.0, KeyBytes::of(&key), Kind::Admitting, run).await
    }

    /// Changes a row that must exist already. Like [`write`](Self::write), but admits nothing to
    /// the gate, and a key that the gate can prove absent costs no query.
    ///
    /// # Errors
    /// [`WriteError::Absent`] when the gate refuses the key; otherwise see [`WriteError`].
    pub async fn update<T, E, F>(&self, key: K, run: F) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: WriteFailure + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        if self.0.check(&key) == Verdict::Absent {
            return Err(WriteError::Absent);
        }
        write::write(&self.0, KeyBytes::of(&key), Kind::Existing, run).await
    }

    /// Deletes a row. The same as [`update`](Self::update): the id stays in the gate until the
    /// next rebuild and costs one sentinel when it is asked for.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub async fn delete<T, E, F>(&self, key: K, run: F) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: WriteFailure + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.update(key, run).await
    }

    /// Builds a new generation from the source, under a fresh hash key, and puts it in service.
    /// The old one serves meanwhile. Requests that come while one is waiting share it.
    ///
    /// # Errors
    /// When the guard has no gate to build, or is shutting down.
    pub async fn rebuild(&self) -> Result<(), RebuildError> {
        self.0.rebuilds.ask().await
    }

    /// Stops refusing, then takes no new writes, waits for those that are running, at most for
    /// `grace`, and leaves the other instances (rule A7). To be called when the server has stopped
    /// taking requests. Returns the number of writes that were still running. Reads are answered
    /// until the guard is dropped.
    pub async fn shutdown(&self, grace: Duration) -> usize {
        self.0.gate.shut_down();
        self.0.running_writes.send_modify(|writes| writes.closed = true);
        let mut running = self.0.running_writes.subscribe();
        let idle = running.wait_for(|writes| writes.running == 0);
        // Whether they ended or the grace did shows in the count.
        let _ = self.0.clock.timeout(grace, idle).await;
        self.0.backplane.leave().await;
        self.0.running_writes.borrow().running
    }
}
