//! Database sessions of the tests, which hold locks and look at the rows.

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::runtime::Runtime;

use crate::service::Service;

/// A blocking database session. Dropping it ends the session and releases its locks.
pub(crate) struct DatabaseSession {
    connection: Option<Connected>,
    runtime: Runtime,
}

enum Connected {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

impl DatabaseSession {
    /// Opens a session at a URL of PostgreSQL or of an SQLite file.
    pub(crate) fn open(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let connection = runtime.block_on(async {
            if url.starts_with("sqlite:") {
                Connected::Sqlite(SqliteConnection::connect(url).await.unwrap())
            } else {
                Connected::Postgres(PgConnection::connect(url).await.unwrap())
            }
        });
        Self { connection: Some(connection), runtime }
    }

    /// Runs statements.
    pub(crate) fn run(&mut self, sql: &str) {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        let connection = self.connection.as_mut().unwrap();
        self.runtime.block_on(async {
            match connection {
                Connected::Postgres(connection) => drop(sql.execute(connection).await.unwrap()),
                Connected::Sqlite(connection) => drop(sql.execute(connection).await.unwrap()),
            }
        });
    }

    /// The integer that a statement of one row and one column returns.
    pub(crate) fn integer(&mut self, sql: &str) -> i64 {
        let sql = AssertSqlSafe(sql.to_owned());
        let connection = self.connection.as_mut().unwrap();
        self.runtime.block_on(async {
            let number = match connection {
                Connected::Postgres(connection) => {
                    sqlx::query_scalar(sql).fetch_one(connection).await
                }
                Connected::Sqlite(connection) => {
                    sqlx::query_scalar(sql).fetch_one(connection).await
                }
            };
            number.unwrap()
        })
    }

    /// The ids and names of the products with this id or a higher one.
    pub(crate) fn products_from(&mut self, first: i64) -> Vec<(i64, String)> {
        const SQL: &str = "SELECT id, name FROM products WHERE id >= $1 ORDER BY id";
        let connection = self.connection.as_mut().unwrap();
        self.runtime.block_on(async {
            let rows = match connection {
                Connected::Postgres(connection) => {
                    sqlx::query_as(SQL).bind(first).fetch_all(connection).await
                }
                Connected::Sqlite(connection) => {
                    sqlx::query_as(SQL).bind(first).fetch_all(connection).await
                }
            };
            rows.unwrap()
        })
    }
}

/// Locks the table of products of a PostgreSQL database against reads and writes.
pub(crate) fn lock_products(url: &str) -> DatabaseSession {
    let mut session = DatabaseSession::open(url);
    session.run("BEGIN; LOCK TABLE products IN ACCESS EXCLUSIVE MODE");
    session
}

/// Counts the service's statements that wait for a lock.
pub(crate) const BLOCKED: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND application_name = 'product-detail' \
    AND wait_event_type = 'Lock'";

/// Waits until this many statements of the service wait for a lock of the database at `url`.
pub(crate) fn until_blocked(service: &Service, url: &str, statements: usize) {
    let mut session = DatabaseSession::open(url);
    service.until("blocked by the lock", || session.integer(BLOCKED) >= statements as i64);
}

impl Drop for DatabaseSession {
    fn drop(&mut self) {
        let connection = self.connection.take();
        let closing = async {
            match connection {
                Some(Connected::Postgres(connection)) => drop(connection.close().await),
                Some(Connected::Sqlite(connection)) => drop(connection.close().await),
                None => {}
            }
        };
        self.runtime.block_on(async {
            // The server may be stopped, so that the wait needs a limit.
            drop(tokio::time::timeout(std::time::Duration::from_secs(2), closing).await);
        });
    }
}
