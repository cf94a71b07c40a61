//! The keys of an SQLite table.

use std::fmt;
use std::marker::PhantomData;

use futures_util::future::BoxFuture;
use sqlx::sqlite::Sqlite;
use sqlx::{AssertSqlSafe, SqlitePool};

use super::pages::{self, Statements};
use crate::error::{Error, SourceError};
use crate::key::Key;
use crate::ports::{Quiesced, Scan, ScanCompleted, ScanFrom, Source};

/// Keys in one query. A page takes a few milliseconds.
pub(super) const PAGE: u32 = 10_000;

/// The keys in one column of an SQLite table. The column needs a unique index, so that a page is
/// found without a scan; rows where it is NULL are passed over.
///
/// Equality of the column must be that of bytes: no `COLLATE NOCASE`, no `RTRIM`. With those the
/// database finds a row under spellings that the gate would refuse.
pub struct SqliteTable<K> {
    pool: SqlitePool,
    sql: Statements,
    key: PhantomData<fn() -> K>,
}

impl<K> fmt::Debug for SqliteTable<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SqliteTable").field(&self.sql.what()).finish()
    }
}

impl<K> SqliteTable<K> {
    /// The keys in `column` of `table`.
    ///
    /// # Errors
    /// [`Error::Config`] if a name is empty or holds a NUL.
    pub fn new(pool: SqlitePool, table: &str, column: &str) -> Result<Self, Error> {
        Ok(Self { pool, sql: Statements::new(table, column, "?1", PAGE)?, key: PhantomData })
    }
}

impl<K> Source for SqliteTable<K>
where
    K: Key
        + Unpin
        + for<'r> sqlx::Decode<'r, Sqlite>
        + sqlx::Type<Sqlite>
        + for<'q> sqlx::Encode<'q, Sqlite>,
{
    fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>> {
        Box::pin(async move {
            let counted: i64 = sqlx::query_scalar(AssertSqlSafe(self.sql.count.clone()))
                .fetch_one(&self.pool)
                .await
                .map_err(|error| self.sql.failed(error))?;
            Ok(counted.unsigned_abs())
        })
    }

    /// Holds the file's write lock once: whoever was writing is done.
    fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>> {
        Box::pin(async move {
            let locked = self.pool.begin_with("BEGIN IMMEDIATE").await;
            let locked = locked.map_err(|error| self.sql.failed(error))?;
            locked.rollback().await.map_err(|error| self.sql.failed(error))?;
            Ok(Quiesced::Drained)
        })
    }

    fn scan<'a>(
        &'a self,
        from: ScanFrom,
        into: &'a mut dyn Scan,
    ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>> {
        Box::pin(pages::walk(from, into, move |last: Option<K>| {
            let page = match last {
                None => sqlx::query_scalar(AssertSqlSafe(self.sql.first.clone())),
                Some(last) => sqlx::query_scalar(AssertSqlSafe(self.sql.next.clone())).bind(last),
            };
            Box::pin(async move {
                page.fetch_all(&self.pool).await.map_err(|error| self.sql.failed(error))
            })
        }))
    }
}
