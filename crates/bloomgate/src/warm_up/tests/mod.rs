//! Scans that end, break off, resume or stall; and what may still be under way at a start.

mod filling;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod scanned;
#[cfg(feature = "sqlite")]
mod sqlite;
