//! Invalidation of what was changed behind the guard's back.

use std::sync::Arc;
use std::time::Duration;

use super::Inner;
use super::handle;
use super::open_write::Kind;
use crate::error::{AdmitError, InvalidateError};
use crate::key::{Key, KeyBytes};

/// Keys whose Begins and Ends go out together.
const KEYS_AT_A_TIME: usize = 1_000;
/// Longest wait for one step of clearing the shared cache.
const CLEAR_STEP_TIMEOUT: Duration = Duration::from_secs(1);

/// Begin and End of each key. The gate admits them: a row may have been inserted.
pub(super) async fn invalidate<K: Key, V: Send + Sync + 'static>(
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
pub(super) async fn invalidate_all<K: Key, V: Send + Sync + 'static>(
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
