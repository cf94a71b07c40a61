//! The loader: asking the database for rows, within limits.

mod bulkhead;
mod from_fn;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod sql_loader;
#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::clock::Clock;
use crate::error::{BoxError, ReadError};
use crate::ports::Loader;
use crate::telemetry::{LoaderCounts, LogLimiter};

pub(crate) use bulkhead::{Bulkhead, BulkheadLimits};
pub use from_fn::{FromFn, from_fn};
#[cfg(feature = "postgres")]
pub use sql_loader::PgLoader;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use sql_loader::SqlLoader;
#[cfg(feature = "sqlite")]
pub use sql_loader::SqliteLoader;

/// A [`Loader`] whose type is forgotten.
pub(crate) trait DynLoader<K, V>: Send + Sync {
    fn describe(&self) -> String;

    fn load<'a>(&'a self, key: &'a K) -> BoxFuture<'a, Result<Option<V>, BoxError>>;
}

struct Erased<L>(L);

impl<K: Send + Sync + 'static, V: Send + 'static, L: Loader<K, V>> DynLoader<K, V> for Erased<L> {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn load<'a>(&'a self, key: &'a K) -> BoxFuture<'a, Result<Option<V>, BoxError>> {
        Box::pin(async move { self.0.load(key).await.map_err(Into::into) })
    }
}

pub(crate) fn erase<K, V>(loader: impl Loader<K, V>) -> Arc<dyn DynLoader<K, V>>
where
    K: Send + Sync + 'static,
    V: Send + 'static,
{
    Arc::new(Erased(loader))
}

/// How much of the database a load may claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// All permits.
    Full,
    /// The smaller share, for ids that were never seen to exist.
    Unseen,
}

/// The loader with its limits.
pub(crate) struct LimitedLoader<K, V> {
    loader: Arc<dyn DynLoader<K, V>>,
    bulkhead: Bulkhead,
    timeout: Duration,
    clock: Clock,
    counts: Arc<LoaderCounts>,
    log_limiter: LogLimiter,
    /// The guard's name, for its log lines.
    name: Arc<str>,
}

impl<K, V> std::fmt::Debug for LimitedLoader<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LimitedLoader").field("bulkhead", &self.bulkhead).finish_non_exhaustive()
    }
}

impl<K: Send + Sync + 'static, V: Send + 'static> LimitedLoader<K, V> {
    pub(crate) fn new(
        loader: Arc<dyn DynLoader<K, V>>,
        bulkhead: Bulkhead,
        timeout: Duration,
        clock: Clock,
        counts: Arc<LoaderCounts>,
        name: Arc<str>,
    ) -> Self {
        let log_limiter = LogLimiter::new(clock.clone());
        Self { loader, bulkhead, timeout, clock, counts, log_limiter, name }
    }

    /// One load: waits for a permit, calls `starting`, asks. A panic of the loader is an error.
    pub(crate) async fn load(
        &self,
        key: &K,
        share: Share,
        starting: impl FnOnce(),
    ) -> Result<Option<V>, ReadError> {
        let _permit = match self.bulkhead.enter(share).await {
            Ok(permit) => permit,
            Err(shed) => {
                self.counts.shed.add();
                return Err(shed);
            }
        };
        starting();
        self.counts.loads.add();
        // The call itself runs inside the future too: a loader may panic before its first await.
        let asked = AssertUnwindSafe(async { self.loader.load(key).await }).catch_unwind();
        match self.clock.timeout(self.timeout, asked).await {
            Ok(Ok(Ok(Some(row)))) => {
                self.counts.found.add();
                Ok(Some(row))
            }
            Ok(Ok(Ok(None))) => {
                self.counts.absent.add();
                Ok(None)
            }
            Ok(Ok(Err(error))) => {
                self.counts.errors.add();
                self.log_limiter.say(|failures| {
                    let error = &*error as &dyn std::error::Error;
                    let (guard, from) = (&*self.name, self.loader.describe());
                    tracing::warn!(guard, error, failures, from, "loads fail");
                });
                Err(ReadError::load(error))
            }
            Ok(Err(_panic)) => {
                self.counts.errors.add();
                self.counts.panics.add();
                tracing::error!(guard = &*self.name, "a loader panicked");
                Err(ReadError::LoadPanicked)
            }
            Err(_elapsed) => {
                self.counts.timeouts.add();
                Err(ReadError::LoadTimedOut { after: self.timeout })
            }
        }
    }
}
