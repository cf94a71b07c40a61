//! Snapshots as their users and their enemies see them: files, processes, damage and forgery.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what goes wrong fails the test")]

mod damaged;
mod disk;
mod forge;
mod fuzz;
mod golden;
mod hostile;
mod secrecy;
mod sets;
