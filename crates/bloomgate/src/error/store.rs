//! Failures of the shared cache.

use super::BoxError;

/// What kind of failure a [`Store`](crate::ports::Store) met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// It can't be reached, or the link broke.
    Unreachable,
    /// It did not answer within the budget.
    TimedOut,
    /// It answered that it won't: full, read-only, loading.
    Rejected,
    /// It answered something that makes no sense.
    InvalidResponse,
    /// It will never work with this store: wrong version, wrong password.
    Unsupported,
}

/// A failure of the shared cache.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    #[source]
    source: Option<BoxError>,
}

impl StoreError {
    /// An error of the given kind. `message` says what was tried and why it failed; it must not
    /// hold a password.
    #[must_use]
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Adds the error below this one.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// True if the server may not have been reached at all, or never answered: what counts for a
    /// circuit breaker.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unreachable | StoreErrorKind::TimedOut)
    }
}
