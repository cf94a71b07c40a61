//! The keys of a PostgreSQL table.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::postgres::Postgres;
use sqlx::{AssertSqlSafe, PgPool};

use super::pages::{self, Statements};
use crate::clock::Clock;
use crate::error::{Error, SourceError};
use crate::key::Key;
use crate::ports::{Quiesced, Scan, ScanCompleted, ScanFrom, Source};

/// Keys in one query.
pub(super) const PAGE: u32 = 50_000;
/// For statements that a killed predecessor left in a socket.
const IN_A_SOCKET: Duration = Duration::from_secs(1);
/// Between two looks at the running transactions.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The keys in one column of a PostgreSQL table. The column needs a unique index, so that a page
/// is found without a scan; rows where it is NULL are passed over.
///
/// Equality of the column must be that of bytes: no `citext`, no `char(n)`, no nondeterministic
/// collation. With those the database finds a row under spellings that the gate would refuse.
pub struct PgTable<K> {
    pool: PgPool,
    sql: Statements,
    clock: Clock,
    key: PhantomData<fn() -> K>,
}

impl<K> fmt::Debug for PgTable<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PgTable").field(&self.sql.what()).finish()
    }
}

impl<K> PgTable<K> {
    /// The keys in `column` of `table` (`schema.table` names a schema). The pool must lead to the
    /// primary: a replica may lack what was committed.
    ///
    /// # Errors
    /// [`Error::Config`] if a name is empty or holds a NUL.
    pub fn new(pool: PgPool, table: &str, column: &str) -> Result<Self, Error> {
        let sql = Statements::new(table, column, "$1", PAGE)?;
        Ok(Self { pool, sql, clock: Clock::system(), key: PhantomData })
    }

    /// One number about the running transactions.
    async fn ask(&self, sql: &'static str) -> Result<i64, SourceError> {
        sqlx::query_scalar(sql).fetch_one(&self.pool).await.map_err(|error| self.sql.failed(error))
    }
}

impl<K> Source for PgTable<K>
where
    K: Key
        + Unpin
        + for<'r> sqlx::Decode<'r, Postgres>
        + sqlx::Type<Postgres>
        + for<'q> sqlx::Encode<'q, Postgres>,
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

    /// First a second for statements that are still in a socket, so that their transactions have
    /// begun; then until every transaction that has begun by then is over: the oldest one running
    /// (`pg_snapshot_xmin`) is younger than one of our own (`pg_current_xact_id`). A snapshot's
    /// `xmax` wouldn't do: it lies just past the last transaction that *ended*, and whoever runs
    /// at or past it would be missed.
    fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>> {
        Box::pin(async move {
            // The second counts from when the server answers.
            self.ask("SELECT 1::bigint").await?;
            self.clock.sleep(IN_A_SOCKET).await;
            let horizon = self.ask("SELECT pg_current_xact_id()::text::bigint").await?;
            while self.ask("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint").await?
                <= horizon
            {
                self.clock.sleep(LOOK_EVERY).await;
            }
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
