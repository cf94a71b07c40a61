//! Failures of the link to the other instances.

/// Why the other instances could not be kept in step.
#[derive(Debug, thiserror::Error)]
#[error("the other instances can't be kept in step: {0}")]
pub struct BackplaneError(pub String);
