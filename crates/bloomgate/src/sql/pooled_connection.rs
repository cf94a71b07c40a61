//! A pooled connection that is returned after a complete answer, and otherwise closed.
//!
//! When a query is dropped half-way, the pool waits for the server to answer it before it hands
//! the connection out again, and counts it as in use until then. A server that stands still would
//! so use up the pool within seconds, and one that is gone for good without a word would keep it
//! used up for as long as TCP keeps trying. Here a connection whose query was dropped is closed,
//! and one that is returned has a limited time to show that it works.

use std::time::Duration;

use sqlx::Pool;
use sqlx::pool::PoolConnection;

use super::SqlDatabase;

/// Longest wait for a connection that is returned. It is one round trip.
const RETURN_WITHIN: Duration = Duration::from_secs(1);

/// A connection in use. Dropping it closes it (if the database
/// [says so](SqlDatabase::CLOSES_ABANDONED)); see [`release`](Self::release).
pub(crate) struct PooledConnection<DB: SqlDatabase> {
    connection: PoolConnection<DB>,
    answered: bool,
}

impl<DB: SqlDatabase> PooledConnection<DB> {
    pub(crate) async fn acquire(pool: &Pool<DB>) -> Result<Self, sqlx::Error> {
        Ok(Self { connection: pool.acquire().await?, answered: false })
    }

    pub(crate) fn connection(&mut self) -> &mut DB::Connection {
        &mut self.connection
    }

    /// Returns the connection to the pool: the database has answered the query to the end.
    pub(crate) fn release(mut self) {
        self.answered = true;
    }
}

impl<DB: SqlDatabase> Drop for PooledConnection<DB> {
    fn drop(&mut self) {
        if !DB::CLOSES_ABANDONED {
            // The pool's own way of returning.
            return;
        }
        if self.answered
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let returning = self.connection.return_to_pool();
            // A connection that is dropped while it returns is closed, and its permit in the pool
            // is free.
            runtime.spawn(async move { tokio::time::timeout(RETURN_WITHIN, returning).await });
        } else {
            self.connection.close_on_drop();
        }
    }
}
