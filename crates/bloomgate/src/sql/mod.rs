//! SQL vocabulary: databases, keys as columns, quoted names.
//!
//! [`SqlTable`](crate::warm_up::SqlTable) and [`SqlLoader`](crate::loader::SqlLoader) are written
//! once, for any [`SqlDatabase`]. A guard's key type is an [`SqlKey`] of the database: integers,
//! texts, byte strings, UUIDs (feature `uuid`), tuples of these for composite keys, and types of
//! your own by [`sql_key!`](crate::sql_key).

mod database;
mod key;
mod key_table;
mod names;
mod pooled_connection;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(test)]
mod tests;

pub use database::SqlDatabase;
pub use key::{SqlColumn, SqlKey};
pub(crate) use key_table::KeyTable;
pub use names::ColumnNames;
pub(crate) use pooled_connection::PooledConnection;

// For the expansion of `sql_key!`, in crates that don't depend on sqlx by this name.
#[doc(hidden)]
pub use sqlx;
