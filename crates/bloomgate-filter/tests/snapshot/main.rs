//! Snapshots as their users and their enemies see them: files, processes, damage and forgery.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what goes wrong fails the test")]

mod corruption;
mod files;
mod fixtures;
mod forge;
mod forged_fields;
mod fuzz;
mod golden;
mod secrecy;
