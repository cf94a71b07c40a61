//! The port to the database that a row is loaded from.

use std::future::Future;

use crate::error::BoxError;

/// Loads one row from the database.
///
/// `Ok(None)` means that a completed query found no row, and only that: an error, a time-out or a
/// row that doesn't decode must be an `Err`, or an existing id would be remembered as absent.
pub trait Loader<K, V>: Send + Sync + 'static {
    /// What the database can fail with.
    type Error: Into<BoxError>;

    /// Asks for the row with this key. May be dropped at any await when its budget is over.
    fn load(&self, key: &K) -> impl Future<Output = Result<Option<V>, Self::Error>> + Send;
}
