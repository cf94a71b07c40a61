//! Failures of the source of keys.

use super::BoxError;

/// A failure of a [`Source`](crate::ports::Source): the scan did not reach its explicit end.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SourceError {
    message: String,
    cursor_mismatch: bool,
    #[source]
    source: Option<BoxError>,
}

impl SourceError {
    /// An error that says what was being read.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), cursor_mismatch: false, source: None }
    }

    /// A scan was to resume at a [`Cursor`](crate::ports::Cursor) that another source made, or
    /// another version of this one. The guard then scans from the start.
    #[must_use]
    pub fn cursor_mismatch(message: impl Into<String>) -> Self {
        Self { cursor_mismatch: true, ..Self::new(message) }
    }

    /// True if the cursor was at fault.
    #[must_use]
    pub fn is_cursor_mismatch(&self) -> bool {
        self.cursor_mismatch
    }

    /// Adds the error below this one.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }
}
