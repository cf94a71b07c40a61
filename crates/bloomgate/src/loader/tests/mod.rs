//! The loader under its limits, and the SQL loaders over real databases.

mod bulkhead;
mod limited;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
