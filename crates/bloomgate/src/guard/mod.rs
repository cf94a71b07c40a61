//! The façade, and the one place where the path of a request and of a write is written down.

mod builder;
mod codec;
mod create;
mod lease;
mod local_view;
mod path;
mod rebuild;
mod settings;
mod shared_cache_bypass;
mod start;
#[cfg(test)]
mod tests;
mod write;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::answer::{Answer, Verdict};
use crate::clock::Clock;
use crate::error::{Error, WriteError, WriteFailure};
use crate::flight::Flights;
use crate::gate::LiveGate;
use crate::key::{Key, KeyBytes};
use crate::loader::LimitedLoader;
use crate::ports::{Backplane, SlotKey};
use crate::shared_cache::SharedCache;
use crate::telemetry::{Counts, CountsStatus, GateState, GateStatus, InFlight, Status};
use crate::warm_up::Progress;

pub use builder::GuardBuilder;
pub use create::{Admit, Admitted};
pub use settings::OnStoreFailure;

use local_view::LocalView;
use path::Outcome;
use rebuild::RebuildRequests;
use settings::Settings;
use shared_cache_bypass::SharedCacheBypass;

/// A value that the guard caches: anything that goes to JSON and back.
///
/// The shared cache holds it as JSON under a schema id that is part of the slot's name; see
/// [`GuardBuilder::schema`].
pub trait Value: serde::Serialize + serde::de::DeserializeOwned + Send + Sync + 'static {}

impl<T: serde::Serialize + serde::de::DeserializeOwned + Send + Sync + 'static> Value for T {}

/// The guard: a gate, two caches and a loader, in that order. Cheap to clone.
///
/// See the [crate's documentation](crate) for the path of a request.
pub struct Guard<K, V>(Arc<Inner<K, V>>);

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

pub(crate) struct Inner<K, V> {
    name: Arc<str>,
    settings: Settings,
    gate: Arc<LiveGate>,
    local: Arc<LocalView<V>>,
    flights: Arc<Flights<Outcome<V>>>,
    shared: Option<Arc<SharedCache>>,
    slot_prefix: Arc<str>,
    bypass: SharedCacheBypass,
    loader: LimitedLoader<K, V>,
    backplane: Arc<dyn Backplane>,
    clock: Clock,
    counts: Arc<Counts>,
    progress: Arc<Progress>,
    rebuilds: RebuildRequests,
    /// Layers that stand before a route.
    guarded_routes: AtomicU64,
    /// Writes whose task is running; those that merely wait for W to pass are not among them.
    running_writes: watch::Sender<usize>,
    _background: Vec<AbortOnDrop>,
}

impl<K, V> Inner<K, V> {
    fn slot(&self, key: &KeyBytes) -> SlotKey {
        SlotKey::new(Arc::clone(&self.slot_prefix), key.clone())
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
        self.0.guarded_routes.fetch_add(1, Ordering::Relaxed);
    }

    /// The status document. Costs up to a millisecond, for the bits of a large gate are sampled.
    #[must_use]
    pub fn status(&self) -> Status {
        let inner = &*self.0;
        let (open_reason, serving, building) = inner.gate.snapshot();
        let shown = serving.as_ref().or(building.as_ref());
        let stats = shown.map(|generation| generation.stats());
        let state = if open_reason.is_none() { GateState::Closed } else { GateState::Open };
        Status {
            enabled: true,
            name: inner.name.to_string(),
            gate: GateStatus {
                state,
                reason: open_reason.map(crate::OpenReason::name),
                detail: open_reason.map(|why| why.to_string()),
                generation: serving.as_ref().map_or(0, |generation| generation.number()),
                family: shown.map_or("none", |generation| generation.family().name()),
                items: stats.as_ref().map_or(0, |stats| stats.items),
                distinct: stats.as_ref().and_then(|stats| stats.distinct),
                capacity: stats.as_ref().and_then(|stats| stats.capacity),
                fill_ratio: stats.as_ref().map_or(0.0, |stats| stats.fill_ratio),
                expected_false_positive_rate: stats
                    .as_ref()
                    .map_or(0.0, |stats| stats.expected_false_positive_rate),
                current_false_positive_rate: stats
                    .as_ref()
                    .map_or(0.0, |stats| stats.current_false_positive_rate),
                bytes: stats.as_ref().map_or(0, |stats| stats.bytes),
                building: building.is_some(),
            },
            counts: CountsStatus::of(&inner.counts),
            in_flight: InFlight {
                loads: inner.flights.running() as u64,
                writes: inner.gate.open_writes().len() as u64,
            },
            guarded_routes: inner.guarded_routes.load(Ordering::Relaxed),
            warm_up_error: inner.progress.last_error(),
            shared_cache_error: inner.shared.as_ref().and_then(|shared| shared.last_error()),
        }
    }
}

impl<K: Key, V: Value> Guard<K, V> {
    /// Begins to describe a guard. `name` is the namespace of its keys in the shared cache, and
    /// stands in its log lines: 1 to 64 of `a-z`, `0-9`, `-`, `_`, `.`.
    pub fn builder(name: impl Into<String>) -> GuardBuilder<K, V> {
        GuardBuilder::new(name.into())
    }

    /// The row with this key, from the nearest place that has it.
    ///
    /// May be dropped at any await: what it began for others goes on.
    ///
    /// # Errors
    /// When neither a cache nor the database could answer within the budgets. An error says
    /// nothing about whether the row exists.
    pub async fn get(&self, key: &K) -> Result<Answer<V>, Error> {
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
    pub async fn get_many(&self, keys: &[K]) -> Result<Vec<Answer<V>>, Error> {
        // By number: a closure that takes a reference makes a future that no task may be spawned with.
        futures_util::stream::iter(0..keys.len())
            .map(|number| self.get(&keys[number]))
            .buffered(self.0.settings.permits)
            .try_collect()
            .await
    }

    /// Past the gate: for a caller that has had the verdict already, and counted it.
    #[cfg(feature = "tower")]
    pub(crate) async fn answer(&self, key: &K) -> Result<Answer<V>, Error> {
        self.0.answer(key).await
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
        write::write(&self.0, KeyBytes::of(&key), write::Kind::Admitting, run).await
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
        write::write(&self.0, KeyBytes::of(&key), write::Kind::Existing, run).await
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

    /// Creates a row whose key the database assigns: insert in a transaction, admit the key, then
    /// commit. [`Admitted`] comes only from [`Admit::key`], so that forgetting it doesn't compile.
    ///
    /// ```no_run
    /// # #[derive(Debug)] enum Failed { Db(sqlx::Error), Admit(bloomgate::AdmitError) }
    /// # impl From<sqlx::Error> for Failed { fn from(e: sqlx::Error) -> Self { Failed::Db(e) } }
    /// # impl From<bloomgate::AdmitError> for Failed { fn from(e: bloomgate::AdmitError) -> Self { Failed::Admit(e) } }
    /// # impl bloomgate::WriteFailure for Failed { fn outcome_is_known(&self) -> bool { match self { Failed::Db(e) => e.outcome_is_known(), Failed::Admit(_) => true } } }
    /// # async fn example(guard: bloomgate::Guard<i64, String>, pool: sqlx::SqlitePool)
    /// #     -> Result<(), bloomgate::WriteError<Failed>> {
    /// let id = guard
    ///     .create(|admit| async move {
    ///         let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    ///         let id: i64 = sqlx::query_scalar("INSERT INTO names (name) VALUES ('x') RETURNING id")
    ///             .fetch_one(&mut *tx)
    ///             .await?;
    ///         let admitted = admit.key(id).await?;
    ///         tx.commit().await?;
    ///         Ok::<_, Failed>((admitted, id))
    ///     })
    ///     .await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// See [`WriteError`]. An [`AdmitError`](crate::AdmitError) must make `run` fail before it
    /// commits; the `?` does that.
    pub async fn create<T, E, F>(&self, run: impl FnOnce(Admit<K>) -> F) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: WriteFailure + From<crate::error::AdmitError> + Send + 'static,
        F: Future<Output = Result<(Admitted<K>, T), E>> + Send + 'static,
    {
        create::create(&self.0, run).await
    }

    /// Builds a new generation from the source, under a fresh hash key, and puts it in service.
    /// The old one serves meanwhile. Requests that come while one is waiting share it.
    ///
    /// # Errors
    /// When the guard has no gate to build, or is shutting down.
    pub async fn rebuild(&self) -> Result<(), Error> {
        self.0.rebuilds.ask().await
    }

    /// True once the first generation is complete or, with a gate that is open by configuration,
    /// once writes from before the start can't be under way any more and the caches work: what
    /// `/readyz` asks. It never turns back: a gate that opens later must not take a fleet out of
    /// its load balancer.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        if self.0.settings.gate.forced_open {
            self.0.local.is_quiesced()
        } else {
            self.0.gate.was_complete()
        }
    }

    /// OpenReason [`is_ready`](Self::is_ready) is false, for a person; empty when it is true.
    #[must_use]
    pub fn unready_reason(&self) -> String {
        if self.is_ready() {
            return String::new();
        }
        let mut reason = match self.0.gate.snapshot() {
            _ if !self.0.local.is_quiesced() => {
                "writes from before the start may still be under way".to_owned()
            }
            (Some(why), ..) => why.to_string(),
            (None, ..) => String::new(),
        };
        let progress = &self.0.progress;
        if progress.keys() > 0 {
            reason.push_str(&format!("; {} keys read so far", progress.keys()));
        }
        let shared = self.0.shared.as_ref().and_then(|shared| shared.last_error());
        for problem in [progress.last_error(), shared].into_iter().flatten() {
            reason.push_str("; ");
            reason.push_str(&problem);
        }
        reason
    }

    /// Waits for the writes that are running, at most for `grace`, then leaves the other
    /// instances' list. To be called when the server has stopped taking requests. Returns the
    /// number of writes that were still running.
    pub async fn shutdown(&self, grace: Duration) -> usize {
        let mut running = self.0.running_writes.subscribe();
        let idle = running.wait_for(|running| *running == 0);
        // Whether they ended or the grace did shows in the count.
        let _ = self.0.clock.timeout(grace, idle).await;
        self.0.backplane.leave().await;
        *self.0.running_writes.borrow()
    }
}
