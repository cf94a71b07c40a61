//! Failures of the source of keys.

use super::BoxError;

/// A failure of a [`Source`](crate::ports::Source): the scan did not reach its explicit end.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SourceError {
    message: String,
    #[source]
    source: Option<BoxError>,
}

impl SourceError {
    /// An error that says what was being read.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None }
    }

    /// Adds the error below this one.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }
}
