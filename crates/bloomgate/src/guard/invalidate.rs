//! Invalidation of what was changed behind the guard's back.

use std::sync::Arc;
use std::time::Duration;

use super::handle;
use super::open_write::Kind;
use super::{Guard, Inner};
use crate::error::{AdmitError, InvalidateError};
use crate::key::{Key, KeyBytes};

impl<K: Key, V: Send + Sync + 'static> Guard<K, V> {
    /// Makes the guard forget what it has cached of a key that was changed behind its back, in
    /// every cache and at every instance; admits the key, since it may be new. It is a write
    /// without SQL: Begin and End. One or two round trips to the shared cache.
    ///
    /// # Errors
    /// When some cache may still hold the old row. Try again.
    pub async fn invalidate(&self, key: &K) -> Result<(), AdmitError> {
        invalidate(&self.0, vec![KeyBytes::of(key)]).await
    }

    /// [`invalidate`](Self::invalidate) for the keys in hand that `outdated` picks: those of which
    /// this process has a row or a sentinel in its local cache. Keys that only the shared cache
    /// holds are not seen; [`invalidate_all`](Self::invalidate_all) reaches them. Returns how many
    /// keys were invalidated.
    ///
    /// # Errors
    /// When some cache may still hold an old row. Try again.
    pub async fn invalidate_where(
        &self,
        mut outdated: impl FnMut(&K) -> bool,
    ) -> Result<usize, AdmitError> {
        let keys = self.0.local.keys().filter(|(_, key)| outdated(key));
        let keys: Vec<KeyBytes> = keys.map(|(bytes, _)| bytes).collect();
        let picked = keys.len();
        invalidate(&self.0, keys).await?;
        Ok(picked)
    }

    /// Makes the guard forget everything that is cached. Open writes stay open. The gate isn't
    /// touched: for keys that were inserted behind the guard's back, [`rebuild`](Self::rebuild).
    /// Walks through all names of the shared cache's server, in steps.
    ///
    /// # Errors
    /// When something that is cached may have been left. Try again.
    pub async fn invalidate_all(&self) -> Result<(), InvalidateError> {
        clear_everything(&self.0).await
    }
}

/// Keys whose Begins and Ends go out together.
const KEYS_AT_A_TIME: usize = 1_000;
/// Longest wait for one step of clearing the shared cache.
const CLEAR_STEP_TIMEOUT: Duration = Duration::from_secs(1);

/// Begin and End of each key. The gate admits them: a row may have been inserted.
async fn invalidate<K: Key, V: Send + Sync + 'static>(
    inner: &Arc<Inner<K, V>>,
    keys: Vec<KeyBytes>,
) -> Result<(), AdmitError> {
    for some in keys.chunks(KEYS_AT_A_TIME) {
        let write = handle::begin(inner, some.to_vec(), Kind::Admitting).await?;
        // Late or not, the keys are invalidated now.
        let _ = write.end().await;
    }
    Ok(())
}

/// Drops everything that is cached: here, in the shared cache, at the other instances.
async fn clear_everything<K: Key, V: Send + Sync + 'static>(
    inner: &Arc<Inner<K, V>>,
) -> Result<(), InvalidateError> {
    // Rule A3, at Begin: what is under way can't publish any more, here or in a slot.
    inner.local.invalidate_all();
    let cleared = match &inner.shared {
        Some(shared) => shared.clear(&inner.slots.prefix(), CLEAR_STEP_TIMEOUT).await.map(drop),
        None => Ok(()),
    };
    // Rule A3, at End: a flight may have copied an entry before it was cleared.
    inner.local.invalidate_all();
    cleared.map_err(InvalidateError::Store)?;
    inner.backplane.invalidate_all().await?;
    Ok(())
}
