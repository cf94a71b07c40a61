//! Tests of fillings, of quiescing, and of each source.

mod fill;
#[cfg(feature = "postgres")]
mod postgres;
mod quiesce;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod scanned;
mod scripted_source;
#[cfg(feature = "sqlite")]
mod sqlite;
