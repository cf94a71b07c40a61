//! Tests of the loader's limits, and of the SQL loaders on real databases.

mod bulkhead;
mod limited;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod tables;
