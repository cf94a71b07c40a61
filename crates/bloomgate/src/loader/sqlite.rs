//! One row of a SQLite table.

use std::fmt;
use std::marker::PhantomData;

use sqlx::sqlite::{Sqlite, SqliteRow};
use sqlx::{FromRow, SqlitePool};

use crate::ports::Loader;

/// Loads a row with one query. The budget of a load is the guard's; give the pool an
/// `acquire_timeout` within it, and more connections than the guard has permits for loads.
pub struct SqliteLoader<V> {
    pool: SqlitePool,
    sql: &'static str,
    row: PhantomData<fn() -> V>,
}

impl<V> fmt::Debug for SqliteLoader<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteLoader").field("sql", &self.sql).finish_non_exhaustive()
    }
}

impl<V> SqliteLoader<V> {
    /// `sql` selects the row whose key is the parameter `?1`, at most one.
    #[must_use]
    pub fn new(pool: SqlitePool, sql: &'static str) -> Self {
        Self { pool, sql, row: PhantomData }
    }
}

impl<K, V> Loader<K, V> for SqliteLoader<V>
where
    K: Clone + Send + Sync + 'static + sqlx::Type<Sqlite> + for<'q> sqlx::Encode<'q, Sqlite>,
    V: for<'r> FromRow<'r, SqliteRow> + Send + Unpin + 'static,
{
    type Error = sqlx::Error;

    async fn load(&self, key: &K) -> Result<Option<V>, sqlx::Error> {
        sqlx::query_as(self.sql).bind(key.clone()).fetch_optional(&self.pool).await
    }
}
