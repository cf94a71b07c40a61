//! Reasons for which a rebuild does not end in a new generation.

use std::sync::Arc;

use crate::answer::OpenReason;

/// Why a rebuild was given up.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RebuildError {
    /// The configuration keeps the gate open, so there is nothing to build.
    #[error("the configuration keeps the gate open")]
    NoGate,
    /// The guard is going down.
    #[error("the guard is shutting down")]
    ShuttingDown,
    /// What the generation was to prove no longer holds.
    #[error("the generation was voided while it was built: {0}")]
    Voided(OpenReason),
    /// The gate's filter refused its memory.
    #[error("the gate's filter could not be made")]
    Filter(#[source] Arc<bloomgate_filter::Error>),
}
