//! Reasons for which a read has no answer.

use std::sync::Arc;
use std::time::Duration;

use super::BoxError;

/// Why the guard could not answer.
///
/// An answer that fails says nothing about whether the row exists: it is a 5xx, never a 404, and
/// nothing of it is remembered.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// More loads are wanted than the database is to be asked at a time, and the queue's deadline
    /// passed. Try again shortly.
    #[error("the loader is at its limit: no permit within {waited:?}")]
    Shed {
        /// How long the request waited for a permit.
        waited: Duration,
    },
    /// The database did not answer in time.
    #[error("the load did not end within {after:?}")]
    LoadTimedOut {
        /// The load's budget.
        after: Duration,
    },
    /// The loader returned an error.
    #[error("the load failed")]
    Load(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The loader, or the decoding of a value, panicked.
    #[error("the load panicked")]
    LoadPanicked,
}

impl ReadError {
    pub(crate) fn load(source: impl Into<BoxError>) -> Self {
        Self::Load(Arc::from(source.into()))
    }

    /// True if the same request may well succeed in a moment: 503 with `Retry-After`, not 500.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Shed { .. } | Self::LoadTimedOut { .. } | Self::Load(_))
    }
}
