//! SQLite as a database of sources and loaders.

use futures_util::future::BoxFuture;
use sqlx::{Sqlite, SqlitePool};

use super::database::{SqlDatabase, concrete_queries, sealed};
use crate::clock::Clock;

impl sealed::Sealed for Sqlite {}

impl SqlDatabase for Sqlite {
    const PAGE: u32 = 10_000;

    /// A query ends by itself, and a database in memory would go with its last connection.
    const CLOSES_ABANDONED: bool = false;

    fn placeholder(number: usize) -> String {
        format!("?{number}")
    }

    fn quote(name: &str) -> String {
        super::names::double_quoted(name)
    }

    /// There is no server to lose.
    fn is_broken(_error: &sqlx::Error) -> bool {
        false
    }

    fn endpoint(pool: &SqlitePool) -> String {
        pool.connect_options().get_filename().display().to_string()
    }

    /// Holds the file's write lock once: every earlier write has ended by then.
    fn quiesce<'a>(
        pool: &'a SqlitePool,
        _clock: &'a Clock,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        Box::pin(async move { pool.begin_with("BEGIN IMMEDIATE").await?.rollback().await })
    }

    concrete_queries!();
}
