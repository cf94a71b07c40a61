//! Products in PostgreSQL.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bloomgate::loader::PgLoader;
use bloomgate::{AdmitError, Loader as _, Secret};
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, PgPool};
use tokio::time::timeout;

use super::{PrepareError, WriteFailed};
use crate::product::{Product, ProductId};
use crate::product_input::ProductInput;
use crate::seed::{self, Progress};

/// Reads at a time.
pub(super) const LOADS: usize = 32;
const READ_CONNECTIONS: u32 = 36;
const WRITE_CONNECTIONS: u32 = 8;
/// For the warm-up, whose long statements must not be cut off.
const SCAN_CONNECTIONS: u32 = 2;
/// Longest wait for a connection: less than a load may take in all.
const ACQUIRE_WITHIN: Duration = Duration::from_millis(1_500);
/// The server ends a read about when its reader gives up.
const READ_WITHIN: Duration = Duration::from_secs(2);
/// Longest write, unless the guard's write window is very short.
const WRITE_WITHIN: Duration = Duration::from_millis(2_500);
/// Longest wait for the connection that prepares the database.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// Longest wait for the migrations.
const MIGRATE_WITHIN: Duration = Duration::from_secs(60);
/// Of the transaction-level lock under which an empty table is filled.
const SEED_LOCK: i64 = 0x70_72_6f_64_75_63_74;

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/postgres");

/// The columns of a product.
macro_rules! columns {
    () => {
        "id, name, price_cents, description, \
         to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') AS created_at"
    };
}

const FIND: &str = concat!("SELECT ", columns!(), " FROM products WHERE id = $1");

/// Three pools, so that neither a flood of reads nor the warm-up keeps writes waiting.
#[derive(Clone)]
pub(crate) struct Postgres {
    reads: PgPool,
    products: PgLoader<Product>,
    writes: PgPool,
    scans: PgPool,
    options: Arc<PgConnectOptions>,
    write_within: Duration,
}

impl Postgres {
    /// `window` is the guard's write window: the server must have ended a write before it is over.
    pub(super) fn open(options: PgConnectOptions, window: Duration) -> Self {
        let options = options.application_name("product-detail").disable_statement_logging();
        let write_within = WRITE_WITHIN.min(window / 2);
        let ms = |limit: Duration| limit.as_millis().max(1).to_string();
        let reading = options.clone().options([("statement_timeout", ms(READ_WITHIN))]);
        let writing = options.clone().options([
            ("statement_timeout", ms(write_within.mul_f64(0.8))),
            ("idle_in_transaction_session_timeout", ms(write_within)),
        ]);
        // A connection to a server that stands still must not be waited for when it comes back.
        let checked = |connections| {
            PgPoolOptions::new()
                .max_connections(connections)
                .acquire_timeout(ACQUIRE_WITHIN)
                .after_release(|connection, _| Box::pin(is_sound(connection)))
        };
        // The guard's loader knows what to do with dead connections.
        let reads = PgPoolOptions::new()
            .max_connections(READ_CONNECTIONS)
            .acquire_timeout(ACQUIRE_WITHIN)
            .test_before_acquire(false)
            .connect_lazy_with(reading);
        Self {
            products: PgLoader::new(reads.clone(), FIND),
            reads,
            writes: checked(WRITE_CONNECTIONS).connect_lazy_with(writing),
            scans: checked(SCAN_CONNECTIONS).connect_lazy_with(options.clone()),
            options: Arc::new(options),
            write_within,
        }
    }

    /// For the warm-up.
    pub(crate) fn scans(&self) -> &PgPool {
        &self.scans
    }

    /// The secret that all instances of the namespace have: `candidate`, if there was none.
    pub(crate) async fn shared_secret(
        &self,
        namespace: &str,
        candidate: &Secret,
    ) -> Result<Secret, PrepareError> {
        let mut connection = self.migrated().await?;
        let asking = async {
            sqlx::query(
                "INSERT INTO gate_secrets (namespace, secret) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            )
            .bind(namespace)
            .bind(candidate.to_hex())
            .execute(&mut connection)
            .await?;
            sqlx::query_scalar("SELECT secret FROM gate_secrets WHERE namespace = $1")
                .bind(namespace)
                .fetch_one(&mut connection)
                .await
        };
        let asked = timeout(CONNECT_WITHIN, asking).await.map_err(|_| PrepareError::Silent)?;
        let hex: String = asked.map_err(PrepareError::Secret)?;
        Secret::from_hex(&hex).map_err(PrepareError::BadSecret)
    }

    pub(super) async fn prepare(&self, seed: u64) -> Result<(), PrepareError> {
        let connection = self.migrated().await?;
        if seed > 0 {
            let seeded = fill(connection, seed).await;
            seeded.map_err(PrepareError::Seeding)?;
        }
        Ok(())
    }

    /// A connection to the database with all its tables.
    async fn migrated(&self) -> Result<PgConnection, PrepareError> {
        let silent = |_| PrepareError::Silent;
        // Of its own: the pools would tell no more than that the time is over.
        let connecting = timeout(CONNECT_WITHIN, PgConnection::connect_with(&self.options));
        let connection = connecting.await.map_err(silent)?;
        let mut connection = connection.map_err(PrepareError::Connecting)?;
        let migrating = MIGRATIONS.run_direct(None, &mut connection, false);
        let migrated = timeout(MIGRATE_WITHIN, migrating).await.map_err(silent)?;
        migrated.map_err(PrepareError::Migrating)?;
        Ok(connection)
    }

    pub(super) async fn find(&self, id: ProductId) -> Result<Option<Product>, sqlx::Error> {
        self.products.load(&id).await
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
        const SQL: &str = concat!(
            "INSERT INTO products (name, price_cents, description) VALUES ($1, $2, $3) RETURNING ",
            columns!()
        );
        self.in_time(async {
            let mut transaction = self.writes.begin().await?;
            let product: Product = sqlx::query_as(SQL)
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
        const SQL: &str = concat!(
            "UPDATE products SET name = $2, price_cents = $3, description = $4 WHERE id = $1 \
             RETURNING ",
            columns!()
        );
        self.in_time(async {
            Ok(sqlx::query_as(SQL)
                .bind(id)
                .bind(input.name)
                .bind(input.price_cents)
                .bind(input.description)
                .fetch_optional(&self.writes)
                .await?)
        })
        .await
    }

    pub(super) async fn delete(&self, id: ProductId) -> Result<bool, WriteFailed> {
        self.in_time(async {
            let deleted = sqlx::query("DELETE FROM products WHERE id = $1")
                .bind(id)
                .execute(&self.writes)
                .await?;
            Ok(deleted.rows_affected() > 0)
        })
        .await
    }

    pub(super) async fn close(&self) {
        tokio::join!(self.reads.close(), self.writes.close(), self.scans.close());
    }

    async fn in_time<T>(
        &self,
        write: impl Future<Output = Result<T, WriteFailed>>,
    ) -> Result<T, WriteFailed> {
        let written = timeout(self.write_within, write).await;
        written.unwrap_or(Err(WriteFailed::TimedOut))
    }
}

/// False if a connection that comes back doesn't answer in time.
async fn is_sound(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let answered = timeout(Duration::from_secs(1), connection.ping()).await;
    answered.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
    Ok(true)
}

/// Adds demonstration products to an empty table: all of them or none, and only one process.
async fn fill(mut connection: PgConnection, products: u64) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(SEED_LOCK)
        .execute(&mut *transaction)
        .await?;
    let filled: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM products)")
        .fetch_one(&mut *transaction)
        .await?;
    if filled {
        return Ok(());
    }
    let progress = Progress::of(products);
    for (first, last) in seed::portions(products) {
        sqlx::query(
            "INSERT INTO products (name, price_cents, description) \
             SELECT 'Product ' || n, 100 + n * 7919 % 99900, \
             'Demonstration product number ' || n || '.' \
             FROM generate_series($1::bigint, $2::bigint) AS numbers (n) ORDER BY n",
        )
        .bind(first)
        .bind(last)
        .execute(&mut *transaction)
        .await?;
        progress.reached(last);
    }
    transaction.commit().await?;
    connection.close().await
}
