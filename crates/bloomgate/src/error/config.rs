//! Reasons for which a guard is not built.

use std::sync::Arc;

use super::StoreError;

/// Why a guard, or a part of one, could not be built.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A setting that can't be right.
    #[error("{field}: {problem}; {fix}")]
    Setting {
        /// The builder's method.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
        /// What would be right.
        fix: &'static str,
    },
    /// The gate's filter refused its parameters or its memory.
    #[error("the gate's filter could not be made")]
    Filter(#[source] Arc<bloomgate_filter::Error>),
    /// The shared cache refuses to work with this guard for good.
    #[error("the shared cache can't be used")]
    Store(#[source] Arc<StoreError>),
}

impl ConfigError {
    pub(crate) fn setting(
        field: &'static str,
        problem: impl Into<String>,
        fix: &'static str,
    ) -> Self {
        Self::Setting { field, problem: problem.into(), fix }
    }

    pub(crate) fn filter(error: bloomgate_filter::Error) -> Self {
        Self::Filter(Arc::new(error))
    }
}
