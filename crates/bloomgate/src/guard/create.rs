//! Writes whose key the database assigns.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::write::{Kind, OpenWrite, Running, finish, in_own_task, is_known, run_within};
use super::{Inner, OnStoreFailure, Value};
use crate::clock::Moment;
use crate::error::{AdmitError, WriteError, WriteFailure};
use crate::key::{Key, KeyBytes};

/// Admits keys within one [`create`](super::Guard::create).
pub struct Admit<K> {
    write: Arc<dyn AdmitKey>,
    key: PhantomData<fn(K)>,
}

impl<K> Clone for Admit<K> {
    fn clone(&self) -> Self {
        Self { write: Arc::clone(&self.write), key: PhantomData }
    }
}

impl<K> fmt::Debug for Admit<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admit").finish_non_exhaustive()
    }
}

/// The proof that a key was admitted before the transaction that made it committed.
#[must_use = "return it from `run`, next to the result"]
#[derive(Debug)]
pub struct Admitted<K>(PhantomData<fn(K)>);

impl<K: Key> Admit<K> {
    /// Begins the write of `key`. To be called after the insert that made the key and before the
    /// commit that makes it visible; once for each row.
    ///
    /// # Errors
    /// When the key can't be admitted everywhere; the transaction must not commit then.
    pub async fn key(&self, key: K) -> Result<Admitted<K>, AdmitError> {
        self.write.admit(KeyBytes::of(&key)).await?;
        Ok(Admitted(PhantomData))
    }
}

/// An [`Admit`] that has forgotten the guard's type of values.
trait AdmitKey: Send + Sync {
    fn admit(&self, key: KeyBytes) -> BoxFuture<'_, Result<(), AdmitError>>;
}

struct Creation<K: Key, V: Value> {
    inner: Arc<Inner<K, V>>,
    started: Moment,
    /// `None` once `run` is over.
    open: Mutex<Option<Vec<OpenWrite<K, V>>>>,
}

impl<K: Key, V: Value> AdmitKey for Creation<K, V> {
    fn admit(&self, key: KeyBytes) -> BoxFuture<'_, Result<(), AdmitError>> {
        Box::pin(async move {
            if self.open.lock().is_none() {
                return Err(AdmitError::Closed);
            }
            let open = OpenWrite::begin(&self.inner, key, Kind::Admitting, self.started).await?;
            match &mut *self.open.lock() {
                Some(all) => {
                    all.push(open);
                    Ok(())
                }
                // `run` is over, and somebody still held its `Admit`. The write that has open
                // here is dropped, which leaves it open until W: harmless.
                None => Err(AdmitError::Closed),
            }
        })
    }
}

pub(super) async fn create<K, V, T, E, F>(
    inner: &Arc<Inner<K, V>>,
    run: impl FnOnce(Admit<K>) -> F,
) -> Result<T, WriteError<E>>
where
    K: Key,
    V: Value,
    T: Send + 'static,
    E: WriteFailure + From<AdmitError> + Send + 'static,
    F: Future<Output = Result<(Admitted<K>, T), E>> + Send + 'static,
{
    let started = inner.clock.now();
    let creation = Arc::new(Creation {
        inner: Arc::clone(inner),
        started,
        open: Mutex::new(Some(Vec::new())),
    });
    let running = Running::count(inner);
    let run = run(Admit { write: Arc::clone(&creation) as Arc<dyn AdmitKey>, key: PhantomData });
    in_own_task(async move {
        let _running = running;
        ready_for_writes(&creation.inner, started).await?;
        let outcome = run_within(&creation.inner, started, run).await;
        let open = creation.open.lock().take().unwrap_or_default();
        finish(open, is_known(&outcome)).await;
        outcome.map(|(_admitted, created)| created)
    })
    .await
}

/// Waits for the backplane before `run` opens its transaction, which must not be kept open by a
/// wait that can be known beforehand.
async fn ready_for_writes<K: Key, V: Value, E>(
    inner: &Inner<K, V>,
    started: Moment,
) -> Result<(), WriteError<E>> {
    let by = started + inner.settings.run_for();
    let refused = match inner.clock.timeout_at(by, inner.backplane.ready_for_writes()).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => AdmitError::Backplane(error),
        Err(_elapsed) => AdmitError::Closed,
    };
    if inner.settings.on_store_failure == OnStoreFailure::AllowStale {
        // `Begin` asks again, and counts it.
        return Ok(());
    }
    inner.counts.writes.refused.add();
    Err(WriteError::Begin(refused))
}
