//! A source that is a table of an SQL database.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use sqlx::Pool;

use crate::clock::Clock;
use crate::error::{ConfigError, SourceError};
use crate::ports::{Cursor, KeySink, Quiesced, ScanCompleted, ScanFrom, Source};
use crate::sql::{ColumnNames, KeyTable, SqlDatabase, SqlKey};

/// The keys of a PostgreSQL table.
#[cfg(feature = "postgres")]
pub type PgTable<K> = SqlTable<sqlx::Postgres, K>;
/// The keys of an SQLite table.
#[cfg(feature = "sqlite")]
pub type SqliteTable<K> = SqlTable<sqlx::Sqlite, K>;

/// The keys in a table: one column, or several for a composite key.
///
/// The columns need a unique index in this order, so that a page is found without a scan of the
/// table; rows where one of them is NULL are passed over. The scan reads pages in the order of the
/// key, each with a query of its own, and resumes after the last page.
///
/// # Equality
///
/// Equality of the columns must be that of bytes: in PostgreSQL no `citext`, no `char(n)`, no
/// nondeterministic collation; in SQLite no `COLLATE NOCASE`, no `RTRIM`. With those the database
/// finds a row under spellings that the gate would refuse.
///
/// # Earlier writes
///
/// [`quiesce`](Source::quiesce) waits in PostgreSQL until every transaction has ended that had
/// begun a second after the call, of all databases of the server; in SQLite until the file's write
/// lock was free once.
pub struct SqlTable<DB: SqlDatabase, K> {
    pool: Pool<DB>,
    table: KeyTable<DB>,
    clock: Clock,
    key: PhantomData<fn() -> K>,
}

impl<DB: SqlDatabase, K> Clone for SqlTable<DB, K> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            table: self.table.clone(),
            clock: self.clock.clone(),
            key: PhantomData,
        }
    }
}

impl<DB: SqlDatabase, K> fmt::Debug for SqlTable<DB, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlTable")
            .field("database", &DB::NAME)
            .field("keys", &self.table.name())
            .field("filter", &self.table.condition())
            .finish_non_exhaustive()
    }
}

/// The position of a scan, with the keys that it is a position in: a cursor of another table or
/// filter would skip rows.
#[derive(Serialize, Deserialize)]
struct Position<K> {
    keys: String,
    after: K,
}

impl<DB: SqlDatabase, K: SqlKey<DB>> SqlTable<DB, K> {
    /// The keys in `columns` of `table` (`schema.table` names a schema). The pool must lead to the
    /// primary: a replica may lack what was committed.
    ///
    /// ```
    /// # #[cfg(feature = "postgres")]
    /// # fn sources(pool: &sqlx::PgPool) -> Result<(), bloomgate::ConfigError> {
    /// use bloomgate::warm_up::PgTable;
    ///
    /// let products = PgTable::<i64>::new(pool.clone(), "products", "id")?;
    /// let orders = PgTable::<(String, i64)>::new(pool.clone(), "orders", ["shop", "number"])?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ConfigError::Setting`] if a name is empty or holds a NUL, or the key has not as many parts as
    /// there are columns.
    pub fn new(
        pool: Pool<DB>,
        table: &str,
        columns: impl ColumnNames,
    ) -> Result<Self, ConfigError> {
        let table = KeyTable::new(table, columns)?;
        let fix = "name one column for each part of the key";
        table.check::<K>().map_err(|problem| ConfigError::setting("columns", problem, fix))?;
        Ok(Self { pool, table, clock: Clock::system(), key: PhantomData })
    }

    /// Only the keys of rows that meet a condition, such as `deleted_at IS NULL`.
    ///
    /// The condition is SQL and goes into the statements as it is: never build it from a request.
    /// A row that begins to meet it is a new key to the guard: change it by
    /// [`Guard::write`](crate::Guard::write).
    #[must_use]
    pub fn filter(mut self, condition: impl Into<String>) -> Self {
        self.table.filter(condition.into());
        self
    }

    fn failed(&self, error: sqlx::Error) -> SourceError {
        SourceError::new(format!("reading {}", self.describe())).with_source(error)
    }

    /// The name of these keys in cursors.
    fn identity(&self) -> String {
        let (name, kind) = (self.table.name(), K::kind());
        let condition = self.table.condition().unwrap_or("true");
        format!("{} {name} {kind} where {condition}", DB::NAME)
    }

    /// The key after which a scan begins.
    fn position(&self, from: &ScanFrom) -> Result<Option<K>, SourceError> {
        let ScanFrom::After(cursor) = from else {
            return Ok(None);
        };
        let position: Position<K> = cursor.position()?;
        let identity = self.identity();
        if position.keys != identity {
            let problem = format!("the cursor is of {:?}, not of {identity:?}", position.keys);
            return Err(SourceError::cursor_mismatch(problem));
        }
        Ok(Some(position.after))
    }

    /// The keys of one page, in their order.
    async fn page(&self, sql: Arc<str>, after: Option<&K>) -> Result<Vec<K>, SourceError> {
        let mut arguments = DB::Arguments::default();
        if let Some(after) = after {
            let bound = after.bind(&mut arguments);
            bound.map_err(|error| self.failed(sqlx::Error::Encode(error)))?;
        }
        let reading = async {
            let mut connection = self.pool.acquire().await?;
            let rows = DB::fetch(&mut connection, sql, arguments);
            rows.and_then(async |row| K::decode(&row, 0)).try_collect().await
        };
        reading.await.map_err(|error| self.failed(error))
    }
}

impl<DB: SqlDatabase, K: SqlKey<DB>> Source for SqlTable<DB, K> {
    type Key = K;

    /// The database, its host and port or its file, the table and its columns.
    fn describe(&self) -> String {
        format!("{} of {} {}", self.table.name(), DB::NAME, DB::endpoint(&self.pool))
    }

    fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>> {
        let counting = async move {
            let mut connection = self.pool.acquire().await?;
            let (sql, none) = (self.table.count_sql().into(), DB::Arguments::default());
            let row = DB::fetch_optional(&mut connection, sql, none).await?;
            let counted = DB::integer_column(&row.ok_or(sqlx::Error::RowNotFound)?, 0)?;
            Ok(counted.unsigned_abs())
        };
        Box::pin(async move { counting.await.map_err(|error| self.failed(error)) })
    }

    fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>> {
        Box::pin(async move {
            let quiesced = DB::quiesce(&self.pool, &self.clock).await;
            quiesced.map(|()| Quiesced::Drained).map_err(|error| self.failed(error))
        })
    }

    fn scan<'a>(
        &'a self,
        from: ScanFrom,
        sink: &'a dyn KeySink<K>,
    ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>> {
        Box::pin(async move {
            let mut last = self.position(&from)?;
            let next_page: Arc<str> = self.table.next_page_sql().into();
            loop {
                let sql = match &last {
                    None => self.table.first_page_sql().into(),
                    Some(_) => Arc::clone(&next_page),
                };
                let page = self.page(sql, last.as_ref()).await?;
                // The database's own "no more rows" is the end; a short page is not.
                let Some(newest) = page.last().cloned() else {
                    return Ok(ScanCompleted::explicit_end());
                };
                sink.insert(&page);
                let position = Position { keys: self.identity(), after: newest };
                sink.checkpoint(Cursor::new(&position)?);
                last = Some(position.after);
                tokio::task::yield_now().await;
            }
        })
    }
}
