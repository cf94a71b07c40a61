//! A loader of rows of an SQL database.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use sqlx::{FromRow, Pool, Row as _};

use crate::error::{BoxError, ConfigError};
use crate::ports::Loader;
use crate::sql::{ColumnNames, KeyTable, PooledConnection, SqlDatabase, SqlKey};

/// A loader of rows of a PostgreSQL database.
#[cfg(feature = "postgres")]
pub type PgLoader<V> = SqlLoader<sqlx::Postgres, V>;
/// A loader of rows of an SQLite database.
#[cfg(feature = "sqlite")]
pub type SqliteLoader<V> = SqlLoader<sqlx::Sqlite, V>;

/// Keys in one statement of [`load_many`](Loader::load_many).
pub(super) const CHUNK: usize = 256;

/// Loads a row with one query; many rows of a [`table`](Self::table) with one query for each 256
/// keys.
///
/// Give the pool an `acquire_timeout` within the guard's
/// [`load_timeout`](crate::GuardBuilder::load_timeout), and more connections than the guard has
/// permits for [`max_concurrent_loads`](crate::GuardBuilder::max_concurrent_loads).
///
/// # PostgreSQL
///
/// Made for a server that stands still or goes away: a connection whose load was dropped is closed
/// rather than waited for, and a load that meets a dead connection, as all are after a restart of
/// the server, is tried again with the next one. So the pool needs no `test_before_acquire`, which
/// costs a round trip.
pub struct SqlLoader<DB: SqlDatabase, V> {
    pool: Pool<DB>,
    sql: Arc<str>,
    /// `None` for a statement of the user's own.
    table: Option<KeyTable<DB>>,
    row: PhantomData<fn() -> V>,
}

impl<DB: SqlDatabase, V> Clone for SqlLoader<DB, V> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            sql: Arc::clone(&self.sql),
            table: self.table.clone(),
            row: PhantomData,
        }
    }
}

impl<DB: SqlDatabase, V> fmt::Debug for SqlLoader<DB, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlLoader")
            .field("database", &DB::NAME)
            .field("sql", &self.sql)
            .finish_non_exhaustive()
    }
}

impl<DB: SqlDatabase, V> SqlLoader<DB, V> {
    /// `sql` selects the row whose key is the parameters (`$1` in PostgreSQL, `?1` in SQLite; one
    /// for each part of the key), at most one. It goes to the database as it is: never build it
    /// from a request.
    #[must_use]
    pub fn new(pool: Pool<DB>, sql: impl Into<String>) -> Self {
        Self { pool, sql: sql.into().into(), table: None, row: PhantomData }
    }

    /// Selects all columns of the row of `table` whose key is in `columns`: one name, or several
    /// for a composite key.
    ///
    /// ```
    /// # #[cfg(feature = "postgres")]
    /// # fn loaders(pool: &sqlx::PgPool) -> Result<(), bloomgate::ConfigError> {
    /// use bloomgate::loader::PgLoader;
    ///
    /// #[derive(sqlx::FromRow)]
    /// struct Product {
    ///     id: i64,
    ///     name: String,
    /// }
    ///
    /// let products = PgLoader::<Product>::table(pool.clone(), "products", "id")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ConfigError::Setting`] if a name is empty or holds a NUL. A load of a key that has not as many
    /// parts as there are columns is a configuration error of sqlx.
    pub fn table(
        pool: Pool<DB>,
        table: &str,
        columns: impl ColumnNames,
    ) -> Result<Self, ConfigError> {
        Ok(Self::of(pool, KeyTable::new(table, columns)?))
    }

    /// As [`table`](Self::table), for rows that meet a condition, such as `deleted_at IS NULL`; all
    /// others are absent. The condition is SQL and goes into the statement as it is: never build it
    /// from a request.
    ///
    /// # Errors
    /// As [`table`](Self::table).
    pub fn filtered_table(
        pool: Pool<DB>,
        table: &str,
        columns: impl ColumnNames,
        condition: impl Into<String>,
    ) -> Result<Self, ConfigError> {
        let mut table = KeyTable::new(table, columns)?;
        table.filter(condition.into());
        Ok(Self::of(pool, table))
    }

    fn of(pool: Pool<DB>, table: KeyTable<DB>) -> Self {
        Self { pool, sql: table.row_sql().into(), table: Some(table), row: PhantomData }
    }

    /// Runs a query, on another connection if the first one is dead: reading changes nothing.
    async fn rows(
        &self,
        sql: &Arc<str>,
        size: Size,
        bind: impl Fn(&mut DB::Arguments) -> Result<(), BoxError> + Send + Sync,
    ) -> Result<Vec<DB::Row>, sqlx::Error> {
        let mut other_connections = self.pool.options().get_max_connections();
        loop {
            let mut arguments = DB::Arguments::default();
            bind(&mut arguments).map_err(sqlx::Error::Encode)?;
            let mut pooled = PooledConnection::acquire(&self.pool).await?;
            let (connection, sql) = (pooled.connection(), Arc::clone(sql));
            let answer = match size {
                Size::One => {
                    let row = DB::fetch_optional(connection, sql, arguments).await;
                    row.map(|row| row.into_iter().collect())
                }
                Size::Many => DB::fetch(connection, sql, arguments).try_collect().await,
            };
            match answer {
                Err(error) if DB::is_broken(&error) => {
                    if other_connections == 0 {
                        return Err(error);
                    }
                    other_connections -= 1;
                }
                answer => {
                    pooled.release();
                    return answer;
                }
            }
        }
    }
}

/// How many rows a query may find.
#[derive(Clone, Copy)]
enum Size {
    One,
    Many,
}

impl<DB, V> SqlLoader<DB, V>
where
    DB: SqlDatabase,
    V: for<'r> FromRow<'r, DB::Row> + Send + Unpin + 'static,
{
    /// At most [`CHUNK`] rows of a table, with one statement.
    async fn load_chunk<K: SqlKey<DB>>(
        &self,
        table: &KeyTable<DB>,
        keys: &[K],
    ) -> Result<Vec<Option<V>>, sqlx::Error> {
        let [.., last] = keys else {
            return Ok(Vec::new());
        };
        // The last key fills up to a power of two, so that there are few statements to prepare.
        let wanted = keys.len().next_power_of_two();
        let sql = table.rows_sql(wanted).into();
        let found = self.rows(&sql, Size::Many, |arguments| {
            let filling = std::iter::repeat_n(last, wanted - keys.len());
            keys.iter().chain(filling).try_for_each(|key| key.bind(arguments))
        });
        let mut rows: Vec<Option<V>> = keys.iter().map(|_| None).collect();
        for row in found.await? {
            let position = DB::integer_column(&row, row.len().saturating_sub(1))?;
            // Behind the keys are repetitions of the last one.
            let slot = usize::try_from(position).ok().and_then(|position| rows.get_mut(position));
            if let Some(slot) = slot {
                *slot = Some(V::from_row(&row)?);
            }
        }
        Ok(rows)
    }
}

impl<DB, K, V> Loader<K, V> for SqlLoader<DB, V>
where
    DB: SqlDatabase,
    K: SqlKey<DB>,
    V: for<'r> FromRow<'r, DB::Row> + Send + Unpin + 'static,
{
    type Error = sqlx::Error;

    /// The database, its host and port or its file, and the table if there is one.
    fn describe(&self) -> String {
        let (database, endpoint) = (DB::NAME, DB::endpoint(&self.pool));
        match &self.table {
            Some(table) => format!("{} of {database} {endpoint}", table.name()),
            None => format!("{database} {endpoint}"),
        }
    }

    async fn load(&self, key: &K) -> Result<Option<V>, sqlx::Error> {
        if let Some(table) = &self.table {
            table.check::<K>().map_err(|problem| sqlx::Error::Configuration(problem.into()))?;
        }
        let rows = self.rows(&self.sql, Size::One, |arguments| key.bind(arguments)).await?;
        rows.first().map(V::from_row).transpose()
    }

    async fn load_many(&self, keys: &[K]) -> Result<Vec<Option<V>>, sqlx::Error> {
        let mut rows = Vec::with_capacity(keys.len());
        match &self.table {
            None => {
                for key in keys {
                    rows.push(self.load(key).await?);
                }
            }
            Some(table) => {
                table.check::<K>().map_err(|problem| sqlx::Error::Configuration(problem.into()))?;
                for chunk in keys.chunks(CHUNK) {
                    rows.append(&mut self.load_chunk(table, chunk).await?);
                }
            }
        }
        Ok(rows)
    }
}
