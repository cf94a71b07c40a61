//! Writes whose key the database assigns.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::open_write::{Kind, OpenWrite};
use super::write::{Running, finish, in_own_task, is_known, run_within};
use super::{Guard, Inner, OnStoreFailure};
use crate::clock::Moment;
use crate::error::{AdmitError, WriteError, WriteFailure};
use crate::key::{Key, KeyBytes};
use crate::ports::WriteId;

impl<K: Key, V: Send + Sync + 'static> Guard<K, V> {
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
        E: WriteFailure + From<AdmitError> + Send + 'static,
        F: Future<Output = Result<(Admitted<K>, T), E>> + Send + 'static,
    {
        run_create(&self.0, run).await
    }
}

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

/// The proof that a key was admitted before the transaction that made it committed. It is good for
/// the [`create`](super::Guard::create) that it comes from, and for no other.
#[must_use = "return it from `run`, next to the result"]
pub struct Admitted<K> {
    creation: WriteId,
    key: PhantomData<fn(K)>,
}

impl<K> fmt::Debug for Admitted<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admitted").finish_non_exhaustive()
    }
}

impl<K: Key> Admit<K> {
    /// Begins the write of `key`. To be called after the insert that made the key and before the
    /// commit that makes it visible; once for each row.
    ///
    /// # Errors
    /// When the key can't be admitted everywhere; the transaction must not commit then.
    pub async fn key(&self, key: K) -> Result<Admitted<K>, AdmitError> {
        let creation = self.write.admit(KeyBytes::of(&key)).await?;
        Ok(Admitted { creation, key: PhantomData })
    }
}

/// An [`Admit`] without the guard's type of values.
trait AdmitKey: Send + Sync {
    /// Admits the key and names the creation that it belongs to.
    fn admit(&self, key: KeyBytes) -> BoxFuture<'_, Result<WriteId, AdmitError>>;
}

struct Creation<K: Key, V: Send + Sync + 'static> {
    inner: Arc<Inner<K, V>>,
    id: WriteId,
    started: Moment,
    /// `None` once `run` is over.
    open: Mutex<Option<Vec<OpenWrite<K, V>>>>,
}

impl<K: Key, V: Send + Sync + 'static> AdmitKey for Creation<K, V> {
    fn admit(&self, key: KeyBytes) -> BoxFuture<'_, Result<WriteId, AdmitError>> {
        Box::pin(async move {
            if self.open.lock().is_none() {
                return Err(AdmitError::Closed);
            }
            let write = OpenWrite::begin(&self.inner, key, Kind::Admitting, self.started).await?;
            match &mut *self.open.lock() {
                Some(open) => {
                    open.push(write);
                    Ok(self.id)
                }
                // `run` is over, but a copy of its `Admit` was kept. The write that has begun here
                // is dropped, which leaves it open until W: harmless.
                None => Err(AdmitError::Closed),
            }
        })
    }
}

async fn run_create<K, V, T, E, F>(
    inner: &Arc<Inner<K, V>>,
    run: impl FnOnce(Admit<K>) -> F,
) -> Result<T, WriteError<E>>
where
    K: Key,
    V: Send + Sync + 'static,
    T: Send + 'static,
    E: WriteFailure + From<AdmitError> + Send + 'static,
    F: Future<Output = Result<(Admitted<K>, T), E>> + Send + 'static,
{
    let started = inner.clock.now();
    let running = Running::count(inner).map_err(WriteError::Begin)?;
    let creation = Arc::new(Creation {
        inner: Arc::clone(inner),
        id: WriteId::fresh(),
        started,
        open: Mutex::new(Some(Vec::new())),
    });
    let run = run(Admit { write: Arc::clone(&creation) as Arc<dyn AdmitKey>, key: PhantomData });
    in_own_task(async move {
        let _running = running;
        ready_for_writes(&creation.inner, started).await?;
        let outcome = match run_within(&creation.inner, started, run).await {
            Ok((admitted, created)) => check_proof(&creation, &admitted).map(|()| created),
            Err(error) => Err(error),
        };
        let open = creation.open.lock().take().unwrap_or_default();
        finish(open, is_known(&outcome)).await;
        outcome
    })
    .await
}

/// Rule A7: a proof is bound to its write. With that of another write, an id may have been committed
/// that no gate knows, so this gate opens until it has been rebuilt.
fn check_proof<K: Key, V: Send + Sync + 'static, E>(
    creation: &Creation<K, V>,
    admitted: &Admitted<K>,
) -> Result<(), WriteError<E>> {
    if admitted.creation == creation.id {
        return Ok(());
    }
    let inner = &*creation.inner;
    inner.gate.void();
    inner.local.invalidate_all();
    tracing::error!(
        guard = &*inner.name,
        "a create returned the proof of admission of another write: its row may be unknown to the \
         gate, which opens and is rebuilt"
    );
    Err(WriteError::ForeignProof)
}

/// Waits for the backplane before `run` opens its transaction, which must not be kept open by a
/// wait that can be known beforehand.
async fn ready_for_writes<K: Key, V: Send + Sync + 'static, E>(
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
        // Begin asks again, and counts it.
        return Ok(());
    }
    inner.counts.writes.refused.add();
    Err(WriteError::Begin(refused))
}
