//! Products in an SQLite file.

use std::future::Future;
use std::time::Duration;

use bloomgate::AdmitError;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, SqlitePool};

use super::{PrepareError, WriteFailed};
use crate::product::{Product, ProductId};
use crate::product_input::ProductInput;
use crate::seed::{self, Progress};

/// Reads at a time. Each has a thread of its own, so more of them only wait for the processor.
pub(super) const LOADS: usize = 8;
/// Reads, and the warm-up.
const READ_CONNECTIONS: u32 = 12;
/// Longest wait for a connection.
const ACQUIRE_WITHIN: Duration = Duration::from_millis(1_500);
/// Longest wait for another process that writes to the same file.
const BUSY_WITHIN: Duration = Duration::from_secs(5);
/// Longest write: one wait for another process, and some more.
const WRITE_WITHIN: Duration = Duration::from_secs(8);

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/sqlite");

/// One connection writes and many read. A write takes the file's write lock at its first statement:
/// a transaction that begins by reading could not get it any more once another one has written.
#[derive(Clone)]
pub(crate) struct Sqlite {
    reads: SqlitePool,
    writes: SqlitePool,
}

impl Sqlite {
    pub(super) fn open(options: SqliteConnectOptions) -> Self {
        let options = options
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(BUSY_WITHIN)
            .foreign_keys(true)
            .disable_statement_logging();
        let pool = |connections, within| {
            SqlitePoolOptions::new()
                .max_connections(connections)
                .acquire_timeout(within)
                .test_before_acquire(false)
                .connect_lazy_with(options.clone())
        };
        Self {
            reads: pool(READ_CONNECTIONS, ACQUIRE_WITHIN),
            // Writes queue for their connection.
            writes: pool(1, WRITE_WITHIN),
        }
    }

    pub(crate) fn reads(&self) -> &SqlitePool {
        &self.reads
    }

    pub(super) async fn prepare(&self, seed: u64) -> Result<(), PrepareError> {
        let connection = self.writes.acquire().await;
        let mut connection = connection.map_err(PrepareError::Connecting)?;
        let migrated = MIGRATIONS.run_direct(None, &mut *connection, false).await;
        migrated.map_err(PrepareError::Migrating)?;
        drop(connection);
        self.seed(seed).await.map_err(PrepareError::Seeding)
    }

    /// Adds demonstration products to an empty table: all of them or none.
    async fn seed(&self, products: u64) -> Result<(), sqlx::Error> {
        let mut transaction = self.writes.begin_with("BEGIN IMMEDIATE").await?;
        let filled: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM products)")
            .fetch_one(&mut *transaction)
            .await?;
        if filled {
            return Ok(());
        }
        let progress = Progress::of(products);
        for (first, last) in seed::portions(products) {
            sqlx::query(
                "WITH RECURSIVE numbers (n) AS \
                 (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2) \
                 INSERT INTO products (name, price_cents, description) \
                 SELECT 'Product ' || n, 100 + n * 7919 % 99900, \
                 'Demonstration product number ' || n || '.' FROM numbers",
            )
            .bind(first)
            .bind(last)
            .execute(&mut *transaction)
            .await?;
            progress.reached(last);
        }
        transaction.commit().await
    }

    pub(super) async fn find(&self, id: ProductId) -> Result<Option<Product>, sqlx::Error> {
        sqlx::query_as(
            "SELECT id, name, price_cents, description, created_at FROM products WHERE id = ?1",
        )
        .bind(id)
        .fetch_optional(&self.reads)
        .await
    }

    pub(super) async fn insert<A, F>(
        &self,
        input: ProductInput,
        admit: impl FnOnce(ProductId) -> F + Send,
    ) -> Result<(A, Product), WriteFailed>
    where
        A: Send,
        F: Future<Output = Result<A, AdmitError>> + Send,
    {
        in_time(async {
            let mut transaction = self.writes.begin_with("BEGIN IMMEDIATE").await?;
            let product: Product = sqlx::query_as(
                "INSERT INTO products (name, price_cents, description) VALUES (?1, ?2, ?3) \
                 RETURNING id, name, price_cents, description, created_at",
            )
            .bind(input.name)
            .bind(input.price_cents)
            .bind(input.description)
            .fetch_one(&mut *transaction)
            .await?;
            let admitted = admit(product.id).await?;
            transaction.commit().await?;
            Ok((admitted, product))
        })
        .await
    }

    pub(super) async fn update(
        &self,
        id: ProductId,
        input: ProductInput,
    ) -> Result<Option<Product>, WriteFailed> {
        in_time(async {
            let mut transaction = self.writes.begin_with("BEGIN IMMEDIATE").await?;
            let product = sqlx::query_as(
                "UPDATE products SET name = ?2, price_cents = ?3, description = ?4 WHERE id = ?1 \
                 RETURNING id, name, price_cents, description, created_at",
            )
            .bind(id)
            .bind(input.name)
            .bind(input.price_cents)
            .bind(input.description)
            .fetch_optional(&mut *transaction)
            .await?;
            transaction.commit().await?;
            Ok(product)
        })
        .await
    }

    pub(super) async fn delete(&self, id: ProductId) -> Result<bool, WriteFailed> {
        in_time(async {
            let mut transaction = self.writes.begin_with("BEGIN IMMEDIATE").await?;
            let deleted = sqlx::query("DELETE FROM products WHERE id = ?1")
                .bind(id)
                .execute(&mut *transaction)
                .await?;
            transaction.commit().await?;
            Ok(deleted.rows_affected() > 0)
        })
        .await
    }

    pub(super) async fn close(&self) {
        self.reads.close().await;
        // The last one to leave tidies the log up.
        self.writes.close().await;
    }
}

async fn in_time<T>(write: impl Future<Output = Result<T, WriteFailed>>) -> Result<T, WriteFailed> {
    let written = tokio::time::timeout(WRITE_WITHIN, write).await;
    written.unwrap_or(Err(WriteFailed::TimedOut))
}
