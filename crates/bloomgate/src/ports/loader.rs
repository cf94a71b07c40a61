//! The port to the database that a row is loaded from.

use std::future::Future;

use crate::error::BoxError;

/// Loads rows from the database by their keys.
///
/// `None` means that a completed query found no row, and only that: an error, a time-out or a row
/// that doesn't decode must be an `Err`, or an existing id would be remembered as absent.
pub trait Loader<K, V>: Send + Sync + 'static {
    /// The errors of the database.
    type Error: Into<BoxError>;

    /// Where the rows come from, for log lines: a server's host and port, a file; never a
    /// password. Default: the name of the type.
    fn describe(&self) -> String {
        std::any::type_name::<Self>().to_owned()
    }

    /// Asks for the row with this key. May be dropped at any await when its budget is over.
    fn load(&self, key: &K) -> impl Future<Output = Result<Option<V>, Self::Error>> + Send;

    /// Asks for the rows with these keys: one answer for each key, in the order of `keys`. Keys
    /// may repeat. May be dropped at any await.
    ///
    /// Default: [`load`](Self::load) for each key, one after another. An error ends it.
    fn load_many(
        &self,
        keys: &[K],
    ) -> impl Future<Output = Result<Vec<Option<V>>, Self::Error>> + Send
    where
        K: Sync,
        V: Send,
    {
        async move {
            let mut rows = Vec::with_capacity(keys.len());
            for key in keys {
                rows.push(self.load(key).await?);
            }
            Ok(rows)
        }
    }
}
