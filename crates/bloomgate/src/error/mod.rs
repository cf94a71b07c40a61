//! The errors of the guard, without driver types.

mod backplane;
mod config;
mod create;
mod failure;
mod read;
mod rebuild;
mod source;
mod store;
mod write;

pub use backplane::BackplaneError;
pub use config::ConfigError;
pub use create::CreateError;
pub use failure::{Known, Unknown, WriteFailure};
pub use read::ReadError;
pub use rebuild::RebuildError;
pub use source::SourceError;
pub use store::{StoreError, StoreErrorKind};
pub use write::{AdmitError, EndError, InvalidateError, WriteError};

/// Any error of another library, kept as the source of ours.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
