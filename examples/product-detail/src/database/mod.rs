//! The table of products, in SQLite or PostgreSQL.

mod error_log;
mod postgres;
mod readiness;
mod sqlite;

use std::future::Future;
use std::time::Duration;

use bloomgate::{AdmitError, Loader, WriteFailure};

use crate::product::{Product, ProductId};
use crate::product_input::ProductInput;
use crate::settings::DatabaseTarget;

pub(crate) use error_log::error_chain;
pub(crate) use postgres::Postgres;
pub(crate) use readiness::{PreparedSource, Readiness};
pub(crate) use sqlite::Sqlite;

/// A database. Nothing is connected or made until it is used.
#[derive(Clone)]
pub(crate) enum Database {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

/// The reason that a write failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteFailed {
    /// The database said so, or couldn't be asked.
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
    /// The database took too long; what it has done is unknown.
    #[error("the database did not answer in time")]
    TimedOut,
    /// The guard could not make the new id known; nothing was committed.
    #[error("the new id could not be admitted")]
    Admit(#[from] AdmitError),
}

impl WriteFailure for WriteFailed {
    fn outcome_is_known(&self) -> bool {
        match self {
            Self::Database(error) => error.outcome_is_known(),
            Self::TimedOut => false,
            Self::Admit(_) => true,
        }
    }
}

/// The reason that the table can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrepareError {
    #[error("the database can't be reached")]
    Connecting(#[source] sqlx::Error),
    #[error("the database does not answer")]
    Silent,
    #[error("the migrations can't be applied")]
    Migrating(#[source] sqlx::migrate::MigrateError),
    #[error("the secret of the gates can't be read")]
    Secret(#[source] sqlx::Error),
    #[error("the secret in the table gate_secrets is none")]
    BadSecret(#[source] bloomgate_filter::Error),
    #[error("the demonstration products can't be added")]
    Seeding(#[source] sqlx::Error),
}

impl Database {
    pub(crate) fn open(target: &DatabaseTarget, window: Duration) -> Self {
        match target {
            DatabaseTarget::Sqlite(options) => Self::Sqlite(Sqlite::open(options.clone())),
            DatabaseTarget::Postgres(options) => {
                Self::Postgres(Postgres::open(options.clone(), window))
            }
        }
    }

    /// How many reads are sensible at a time; the pool has more connections.
    pub(crate) fn loads(&self) -> usize {
        match self {
            Self::Sqlite(_) => sqlite::LOADS,
            Self::Postgres(_) => postgres::LOADS,
        }
    }

    /// Migrates the database, and adds `seed` products if the table is empty.
    pub(crate) async fn prepare(&self, seed: u64) -> Result<(), PrepareError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.prepare(seed).await,
            Self::Postgres(postgres) => postgres.prepare(seed).await,
        }
    }

    /// Asks for one product.
    pub(crate) async fn find(&self, id: ProductId) -> Result<Option<Product>, sqlx::Error> {
        let found = match self {
            Self::Sqlite(sqlite) => sqlite.find(id).await,
            Self::Postgres(postgres) => postgres.find(id).await,
        };
        found.inspect_err(|error| error_log::log("a product could not be read", error))
    }

    /// Adds a product. `admit` is called with its id before the transaction commits.
    pub(crate) async fn insert<A, F>(
        &self,
        input: ProductInput,
        admit: impl FnOnce(ProductId) -> F + Send,
    ) -> Result<(A, Product), WriteFailed>
    where
        A: Send,
        F: Future<Output = Result<A, AdmitError>> + Send,
    {
        let inserted = match self {
            Self::Sqlite(sqlite) => sqlite.insert(input, admit).await,
            Self::Postgres(postgres) => postgres.insert(input, admit).await,
        };
        inserted.inspect_err(|error| error_log::log("a product could not be added", error))
    }

    /// Changes a product; `None` if there is no such product.
    pub(crate) async fn update(
        &self,
        id: ProductId,
        input: ProductInput,
    ) -> Result<Option<Product>, WriteFailed> {
        let updated = match self {
            Self::Sqlite(sqlite) => sqlite.update(id, input).await,
            Self::Postgres(postgres) => postgres.update(id, input).await,
        };
        updated.inspect_err(|error| error_log::log("a product could not be changed", error))
    }

    /// Deletes a product; false if there is no such product.
    pub(crate) async fn delete(&self, id: ProductId) -> Result<bool, WriteFailed> {
        let deleted = match self {
            Self::Sqlite(sqlite) => sqlite.delete(id).await,
            Self::Postgres(postgres) => postgres.delete(id).await,
        };
        deleted.inspect_err(|error| error_log::log("a product could not be deleted", error))
    }

    /// The smallest id there is.
    pub(crate) async fn first_id(&self) -> Result<Option<i64>, sqlx::Error> {
        const SQL: &str = "SELECT min(id) FROM products";
        match self {
            Self::Sqlite(sqlite) => sqlx::query_scalar(SQL).fetch_one(sqlite.reads()).await,
            Self::Postgres(postgres) => sqlx::query_scalar(SQL).fetch_one(postgres.scans()).await,
        }
    }

    /// Ends all connections; what can't be ended in a moment is left to the system.
    pub(crate) async fn close(&self) {
        let within = Duration::from_secs(1);
        let closing = async {
            match self {
                Self::Sqlite(sqlite) => sqlite.close().await,
                Self::Postgres(postgres) => postgres.close().await,
            }
        };
        let _ = tokio::time::timeout(within, closing).await;
    }
}

impl Loader<ProductId, Product> for Database {
    type Error = sqlx::Error;

    async fn load(&self, id: &ProductId) -> Result<Option<Product>, sqlx::Error> {
        self.find(*id).await
    }
}
