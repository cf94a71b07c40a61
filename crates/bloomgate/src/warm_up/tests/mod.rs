//! Tests of fillings, of quiescing, and of each source.

mod fill;
mod from_stream;
#[cfg(feature = "postgres")]
mod postgres;
mod quiesce;
mod scanned;
mod scripted_source;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod sql_table;
#[cfg(feature = "sqlite")]
mod sqlite;
