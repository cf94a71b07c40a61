//! Warm-up: filling a generation from a source of keys.

mod fill;
mod from_stream;
mod keys;
mod progress;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod sql_table;
#[cfg(test)]
mod tests;

pub(crate) use fill::{fill, quiesce};
pub use from_stream::{StreamSource, from_stream, from_stream_of};
pub use keys::Keys;
pub(crate) use progress::{Backoff, Progress};
#[cfg(feature = "postgres")]
pub use sql_table::PgTable;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use sql_table::SqlTable;
#[cfg(feature = "sqlite")]
pub use sql_table::SqliteTable;

/// Keys that a source in memory hands over before it yields to the runtime.
const BATCH: usize = 4_096;
