//! One row of a PostgreSQL table.

use std::fmt;
use std::marker::PhantomData;

use sqlx::postgres::{PgRow, Postgres};
use sqlx::{FromRow, PgPool};

use super::pooled_connection::{PooledConnection, is_broken};
use crate::ports::Loader;

/// Loads a row with one query.
///
/// Made for a server that stands still or goes away: a connection whose load was cut off is closed
/// rather than waited for, and a load that meets a dead connection, as all are after a restart of
/// the server, is tried again with the next one. So the pool needs no `test_before_acquire`, which
/// costs a round trip. Give it an `acquire_timeout` within the guard's
/// [`load_timeout`](crate::GuardBuilder::load_timeout), and more connections than the guard has permits
/// for [`max_concurrent_loads`](crate::GuardBuilder::max_concurrent_loads).
pub struct PgLoader<V> {
    pool: PgPool,
    sql: &'static str,
    row: PhantomData<fn() -> V>,
}

impl<V> Clone for PgLoader<V> {
    fn clone(&self) -> Self {
        Self { pool: self.pool.clone(), sql: self.sql, row: PhantomData }
    }
}

impl<V> fmt::Debug for PgLoader<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgLoader").field("sql", &self.sql).finish_non_exhaustive()
    }
}

impl<V> PgLoader<V> {
    /// `sql` selects the row whose key is the parameter `$1`, at most one.
    #[must_use]
    pub fn new(pool: PgPool, sql: &'static str) -> Self {
        Self { pool, sql, row: PhantomData }
    }
}

impl<K, V> Loader<K, V> for PgLoader<V>
where
    K: Clone + Send + Sync + 'static + sqlx::Type<Postgres> + for<'q> sqlx::Encode<'q, Postgres>,
    V: for<'r> FromRow<'r, PgRow> + Send + Unpin + 'static,
{
    type Error = sqlx::Error;

    async fn load(&self, key: &K) -> Result<Option<V>, sqlx::Error> {
        let mut others = self.pool.options().get_max_connections();
        loop {
            let mut connection = PooledConnection::of(&self.pool).await?;
            let query = sqlx::query_as(self.sql).bind(key.clone());
            match query.fetch_optional(connection.connection()).await {
                // Reading changes nothing, so another connection may be asked instead.
                Err(error) if is_broken(&error) => {
                    if others == 0 {
                        return Err(error);
                    }
                    others -= 1;
                }
                answer => {
                    connection.give_back();
                    return answer;
                }
            }
        }
    }
}
