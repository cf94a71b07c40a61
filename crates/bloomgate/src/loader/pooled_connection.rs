//! A PostgreSQL connection that is lent for one load, and comes back or is thrown away.
//!
//! When a query is dropped half-way, the pool would wait for the server to answer it before it
//! lends the connection again, and count it as in use until then. A server that stands still would
//! so use up the pool within seconds, and one that is gone for good without a word would keep it
//! used up for as long as TCP keeps trying. Here a connection whose query was dropped is closed,
//! and one that comes back has a limited time to show that it is sound.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgConnection;
use sqlx::{PgPool, Postgres};

/// Longest wait for a connection that comes back. It is one round trip.
const RETURN_WITHIN: Duration = Duration::from_secs(1);

/// A connection on loan. Dropping it closes it; see [`give_back`](Self::give_back).
pub(super) struct PooledConnection {
    connection: PoolConnection<Postgres>,
    sound: bool,
}

impl PooledConnection {
    pub(super) async fn of(pool: &PgPool) -> Result<Self, sqlx::Error> {
        Ok(Self { connection: pool.acquire().await?, sound: false })
    }

    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// The database has answered the query to the end: others can use the connection.
    pub(super) fn give_back(mut self) {
        self.sound = true;
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        if self.sound
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let returning = self.connection.return_to_pool();
            // One that is cut off is closed with it, and its permit in the pool is free.
            runtime.spawn(async move { tokio::time::timeout(RETURN_WITHIN, returning).await });
        } else {
            self.connection.close_on_drop();
        }
    }
}

/// True if the error came with the end of the connection: another one may work.
pub(super) fn is_broken(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => true,
        // The codes with which PostgreSQL ends a session.
        sqlx::Error::Database(answer) => {
            answer.code().is_some_and(|code| code.starts_with("08") || code.starts_with("57P"))
        }
        _ => false,
    }
}
