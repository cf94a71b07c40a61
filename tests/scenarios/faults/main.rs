//! Servers and clients that go away, stall or come back.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a scenario's helpers fail the test at once, with a message"
)]

mod crash;
mod departed_client;
mod ledger;
mod pause;
mod postgres_outage;
mod postgres_start;
mod redis_outage;
#[path = "../service.rs"]
mod service;
mod session;
mod shutdown;
mod stampede;
mod traffic;
mod unknown_outcome;
