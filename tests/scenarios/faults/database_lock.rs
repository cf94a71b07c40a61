//! Database sessions of a test's own, which hold locks for as long as they are told to.

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::runtime::Runtime;

/// A session that blocks its thread while it works. Dropping it ends it, with its locks.
pub(crate) struct DatabaseSession {
    connection: Option<Connected>,
    runtime: Runtime,
}

enum Connected {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

impl DatabaseSession {
    /// Opens one at a URL of PostgreSQL or of an SQLite file.
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

    /// The ids and names of the products from an id on.
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

/// Holds the table of products of a PostgreSQL database, so that nobody reads or writes it.
pub(crate) fn lock_products(url: &str) -> DatabaseSession {
    let mut session = DatabaseSession::open(url);
    session.run("BEGIN; LOCK TABLE products IN ACCESS EXCLUSIVE MODE");
    session
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
            // The server may be gone.
            drop(tokio::time::timeout(std::time::Duration::from_secs(2), closing).await);
        });
    }
}
