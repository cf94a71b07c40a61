//! Warm-up: filling a generation from a source of keys.

mod fill;
mod keys;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod pages;
#[cfg(feature = "postgres")]
mod postgres;
mod progress;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(test)]
mod tests;

pub(crate) use fill::{fill, quiesce};
pub use keys::Keys;
#[cfg(feature = "postgres")]
pub use postgres::PgTable;
pub(crate) use progress::{Backoff, Progress};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteTable;

/// Keys that a source in memory hands over before it yields to the runtime.
const BATCH: usize = 4_096;
