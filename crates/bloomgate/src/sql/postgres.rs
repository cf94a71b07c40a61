//! PostgreSQL as a database of sources and loaders.

use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::{PgPool, Postgres};

use super::database::{SqlDatabase, concrete_queries, sealed};
use crate::clock::Clock;

/// For statements that a killed predecessor left in a socket.
const IN_A_SOCKET: Duration = Duration::from_secs(1);
/// Between two looks at the running transactions.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl sealed::Sealed for Postgres {}

impl SqlDatabase for Postgres {
    const PAGE: u32 = 50_000;

    /// The pool would wait for the server to answer the dropped query. A server that stands still
    /// would use up the pool within seconds.
    const CLOSES_ABANDONED: bool = true;

    fn placeholder(number: usize) -> String {
        format!("${number}")
    }

    fn quote(name: &str) -> String {
        super::names::double_quoted(name)
    }

    /// The class 08 and the codes 57P are those with which PostgreSQL ends a session.
    fn is_broken(error: &sqlx::Error) -> bool {
        match error {
            sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => true,
            sqlx::Error::Database(answer) => {
                answer.code().is_some_and(|code| code.starts_with("08") || code.starts_with("57P"))
            }
            _ => false,
        }
    }

    fn endpoint(pool: &PgPool) -> String {
        let options = pool.connect_options();
        let database = options.get_database().unwrap_or(options.get_username());
        let (host, port) = (options.get_host(), options.get_port());
        match options.get_socket() {
            Some(socket) => format!("{}:{port}/{database}", socket.display()),
            // An IPv6 address.
            None if host.contains(':') && !host.starts_with('[') => {
                format!("[{host}]:{port}/{database}")
            }
            None => format!("{host}:{port}/{database}"),
        }
    }

    /// First a second for statements that are still in a socket, so that their transactions have
    /// begun; then until every transaction that has begun by then is over: the oldest one running
    /// (`pg_snapshot_xmin`) is younger than one of our own (`pg_current_xact_id`). A snapshot's
    /// `xmax` wouldn't do: it lies just past the last transaction that *ended*, and a transaction
    /// that runs at or past it would be missed.
    fn quiesce<'a>(pool: &'a PgPool, clock: &'a Clock) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        let ask = move |sql: &'static str| sqlx::query_scalar::<_, i64>(sql).fetch_one(pool);
        Box::pin(async move {
            // The second counts from when the server answers.
            ask("SELECT 1::bigint").await?;
            clock.sleep(IN_A_SOCKET).await;
            let horizon = ask("SELECT pg_current_xact_id()::text::bigint").await?;
            while ask("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint").await?
                <= horizon
            {
                clock.sleep(LOOK_EVERY).await;
            }
            Ok(())
        })
    }

    concrete_queries!();
}
