//! One row of a PostgreSQL table.

use std::fmt;
use std::marker::PhantomData;

use sqlx::postgres::{PgRow, Postgres};
use sqlx::{FromRow, PgPool};

use crate::ports::Loader;

/// Loads a row with one query. The budget of a load is the guard's; give the pool an
/// `acquire_timeout` within it, and more connections than the guard has places for loads.
pub struct PgLoader<V> {
    pool: PgPool,
    sql: &'static str,
    row: PhantomData<fn() -> V>,
}

impl<V> fmt::Debug for PgLoader<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgLoader")
            .field("sql", &self.sql)
            .finish_non_exhaustive()
    }
}

impl<V> PgLoader<V> {
    /// `sql` selects the row whose key is the parameter `$1`, at most one.
    #[must_use]
    pub fn new(pool: PgPool, sql: &'static str) -> Self {
        Self {
            pool,
            sql,
            row: PhantomData,
        }
    }
}

impl<K, V> Loader<K, V> for PgLoader<V>
where
    K: Clone + Send + Sync + 'static + sqlx::Type<Postgres> + for<'q> sqlx::Encode<'q, Postgres>,
    V: for<'r> FromRow<'r, PgRow> + Send + Unpin + 'static,
{
    type Error = sqlx::Error;

    async fn load(&self, key: &K) -> Result<Option<V>, sqlx::Error> {
        sqlx::query_as(self.sql)
            .bind(key.clone())
            .fetch_optional(&self.pool)
            .await
    }
}
