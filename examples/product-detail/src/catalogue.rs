//! Products, with the guard before the database or without it.

use axum::response::{IntoResponse, Response};
use bloomgate::{Guard, WriteError, WriteFailure as _};

use crate::baseline::Baseline;
use crate::database::{Database, WriteFailed};
use crate::problem::Problem;
use crate::product::{Product, ProductId};
use crate::product_input::ProductInput;

/// Where the handlers read and write products.
#[derive(Clone)]
pub(crate) enum Catalogue {
    Guarded(Guarded),
    Baseline(Baseline),
}

/// Writes go through the guard; reads do so before they reach a handler.
#[derive(Clone)]
pub(crate) struct Guarded {
    guard: Guard<ProductId, Product>,
    database: Database,
}

/// The reason that a product could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CatalogueError {
    /// The database can't be asked now.
    #[error("products can't be read now; try again shortly")]
    Unavailable,
    /// Nothing was written.
    #[error("nothing was written; try again shortly")]
    NotWritten,
    /// It isn't known whether it was written.
    #[error("whether it was written is not known yet; look before you try again")]
    Unclear,
    /// A fault of this service.
    #[error("the service made a mistake")]
    Internal,
}

impl IntoResponse for CatalogueError {
    fn into_response(self) -> Response {
        match self {
            Self::Internal => Problem::internal(),
            temporary => Problem::try_again(temporary.to_string()),
        }
        .into_response()
    }
}

impl From<WriteFailed> for CatalogueError {
    fn from(failed: WriteFailed) -> Self {
        if failed.outcome_is_known() { Self::NotWritten } else { Self::Unclear }
    }
}

impl Guarded {
    pub(crate) fn new(guard: Guard<ProductId, Product>, database: Database) -> Self {
        Self { guard, database }
    }

    pub(crate) fn guard(&self) -> &Guard<ProductId, Product> {
        &self.guard
    }
}

/// The result of a write of a product that must exist; `None` if it doesn't.
fn unless_absent<T>(
    written: Result<T, WriteError<WriteFailed>>,
) -> Result<Option<T>, CatalogueError> {
    match written {
        Ok(written) => Ok(Some(written)),
        Err(WriteError::Absent) => Ok(None),
        Err(WriteError::Begin(_)) => Err(CatalogueError::NotWritten),
        Err(WriteError::Run(failed)) => Err(failed.into()),
        Err(WriteError::TimedOut { .. }) => Err(CatalogueError::Unclear),
        // A panic, or an error that a later version adds.
        Err(_) => Err(CatalogueError::Internal),
    }
}

impl Catalogue {
    pub(crate) fn database(&self) -> &Database {
        match self {
            Self::Guarded(guarded) => &guarded.database,
            Self::Baseline(baseline) => baseline.database(),
        }
    }

    /// Asks for a product.
    pub(crate) async fn read(&self, id: ProductId) -> Result<Option<Product>, CatalogueError> {
        match self {
            Self::Guarded(guarded) => match guarded.guard.get(&id).await {
                Ok(answer) => Ok(answer.value().map(|product| Product::clone(&product))),
                Err(error) if error.is_temporary() => Err(CatalogueError::Unavailable),
                Err(_) => Err(CatalogueError::Internal),
            },
            Self::Baseline(baseline) => baseline.read(id).await,
        }
    }

    /// Adds a product. Its id is made known to every gate before the transaction commits, so that
    /// every read after the answer finds it.
    pub(crate) async fn create(&self, input: ProductInput) -> Result<Product, CatalogueError> {
        match self {
            Self::Guarded(Guarded { guard, database }) => {
                let database = database.clone();
                let created = guard
                    .create(|admit| async move {
                        database.insert(input, |id| async move { admit.key(id).await }).await
                    })
                    .await;
                unless_absent(created)?.ok_or(CatalogueError::Internal)
            }
            Self::Baseline(baseline) => {
                let inserted = baseline.database().insert(input, |_| async { Ok(()) }).await;
                Ok(inserted.map(|((), product)| product)?)
            }
        }
    }

    /// Changes a product; `None` if there is no such product.
    pub(crate) async fn update(
        &self,
        id: ProductId,
        input: ProductInput,
    ) -> Result<Option<Product>, CatalogueError> {
        match self {
            Self::Guarded(Guarded { guard, database }) => {
                let database = database.clone();
                let updating = async move { database.update(id, input).await };
                Ok(unless_absent(guard.update(id, updating).await)?.flatten())
            }
            Self::Baseline(baseline) => Ok(baseline.database().update(id, input).await?),
        }
    }

    /// Deletes a product; false if there is no such product.
    pub(crate) async fn delete(&self, id: ProductId) -> Result<bool, CatalogueError> {
        match self {
            Self::Guarded(Guarded { guard, database }) => {
                let database = database.clone();
                let deleting = async move { database.delete(id).await };
                Ok(unless_absent(guard.delete(id, deleting).await)?.unwrap_or(false))
            }
            Self::Baseline(baseline) => Ok(baseline.database().delete(id).await?),
        }
    }
}
