//! Integration tests of snapshots: files, processes, damage and forgery.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failure fails the test")]

mod corruption;
mod files;
mod fixtures;
mod forge;
mod forged_fields;
mod fuzz;
mod golden;
mod secrecy;
