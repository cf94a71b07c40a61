//! A ready-made error for [`Guard::create`](crate::Guard::create).

use super::{AdmitError, BoxError, WriteFailure};

/// An error for the closure of a [`create`](crate::Guard::create) that has no error type of its
/// own: `?` turns errors of the guard and of sqlx into it, [`known`](Self::known) and
/// [`unknown`](Self::unknown) any other.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The key could not be admitted; the transaction must not commit.
    #[error("the key was not admitted")]
    Admit(#[from] AdmitError),
    /// The database failed.
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
    /// Something else failed, and nothing is under way any more.
    #[error(transparent)]
    Known(BoxError),
    /// Something else failed, and the row may appear a moment later.
    #[error(transparent)]
    Unknown(BoxError),
}

impl CreateError {
    /// An error after which nothing is under way at the database.
    pub fn known(error: impl Into<BoxError>) -> Self {
        Self::Known(error.into())
    }

    /// An error after which the write may still be under way.
    pub fn unknown(error: impl Into<BoxError>) -> Self {
        Self::Unknown(error.into())
    }
}

impl WriteFailure for CreateError {
    fn outcome_is_known(&self) -> bool {
        match self {
            // The `?` that made it came before COMMIT.
            Self::Admit(_) | Self::Known(_) => true,
            #[cfg(any(feature = "postgres", feature = "sqlite"))]
            Self::Database(error) => error.outcome_is_known(),
            Self::Unknown(_) => false,
        }
    }
}
