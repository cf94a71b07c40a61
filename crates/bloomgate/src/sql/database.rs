//! The databases that sources and loaders speak to.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use sqlx::{Database, Decode, Pool, Type};

use crate::clock::Clock;

pub(super) mod sealed {
    /// Keeps [`SqlDatabase`](super::SqlDatabase) open to new methods.
    pub trait Sealed {}
}

/// A database that keys can be scanned in and rows loaded from: `sqlx::Postgres` (feature
/// `postgres`), `sqlx::Sqlite` (feature `sqlite`).
///
/// Its functions are the differences between the databases. They serve
/// [`SqlTable`](crate::warm_up::SqlTable) and [`SqlLoader`](crate::loader::SqlLoader); a service
/// has no reason to call them.
pub trait SqlDatabase: Database + sealed::Sealed {
    /// Keys that a scan reads with one query: a few milliseconds of the server's time.
    const PAGE: u32;

    /// True if a connection whose query was dropped half-way is closed. False if the pool gets it
    /// back and waits for the query to end.
    const CLOSES_ABANDONED: bool;

    /// The placeholder of parameter `number`, counted from 1.
    fn placeholder(number: usize) -> String;

    /// A name in the database's quotes.
    fn quote(name: &str) -> String;

    /// True if the error came with the end of the connection, so that another connection may work.
    fn is_broken(error: &sqlx::Error) -> bool;

    /// Where the pool's connections lead, without user and password.
    fn endpoint(pool: &Pool<Self>) -> String;

    /// Waits until every write that was under way at the call has ended (rule A8).
    fn quiesce<'a>(
        pool: &'a Pool<Self>,
        clock: &'a Clock,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>>;

    /// Runs a query and yields its rows.
    fn fetch<'c>(
        connection: &'c mut Self::Connection,
        sql: Arc<str>,
        arguments: Self::Arguments,
    ) -> BoxStream<'c, Result<Self::Row, sqlx::Error>>;

    /// Runs a query to its end and returns its first row.
    fn fetch_optional<'c>(
        connection: &'c mut Self::Connection,
        sql: Arc<str>,
        arguments: Self::Arguments,
    ) -> BoxFuture<'c, Result<Option<Self::Row>, sqlx::Error>>;

    /// Decodes one column of a row, counted from 0.
    ///
    /// # Errors
    /// When there is no such column, or its value isn't a `T`.
    fn column<'r, T>(row: &'r Self::Row, index: usize) -> Result<T, sqlx::Error>
    where
        T: Decode<'r, Self> + Type<Self>;

    /// Decodes one column of a row, counted from 0, as a 64-bit integer.
    ///
    /// # Errors
    /// When there is no such column, or it isn't one.
    fn integer_column(row: &Self::Row, index: usize) -> Result<i64, sqlx::Error>;
}

/// The functions of [`SqlDatabase`] that read alike for every database, yet need its concrete
/// types.
macro_rules! concrete_queries {
    () => {
        fn fetch<'c>(
            connection: &'c mut Self::Connection,
            sql: std::sync::Arc<str>,
            arguments: Self::Arguments,
        ) -> futures_util::stream::BoxStream<'c, Result<Self::Row, sqlx::Error>> {
            sqlx::query_with(sqlx::AssertSqlSafe(sql), arguments).fetch(connection)
        }

        fn fetch_optional<'c>(
            connection: &'c mut Self::Connection,
            sql: std::sync::Arc<str>,
            arguments: Self::Arguments,
        ) -> futures_util::future::BoxFuture<'c, Result<Option<Self::Row>, sqlx::Error>> {
            Box::pin(
                sqlx::query_with(sqlx::AssertSqlSafe(sql), arguments).fetch_optional(connection),
            )
        }

        fn column<'r, T>(row: &'r Self::Row, index: usize) -> Result<T, sqlx::Error>
        where
            T: sqlx::Decode<'r, Self> + sqlx::Type<Self>,
        {
            sqlx::Row::try_get(row, index)
        }

        fn integer_column(row: &Self::Row, index: usize) -> Result<i64, sqlx::Error> {
            Self::column(row, index)
        }
    };
}
pub(super) use concrete_queries;
