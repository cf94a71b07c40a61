//! Faults of the servers and clients around the service, and of the service itself.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a scenario's helpers fail the test at once, with a message"
)]

mod client_disconnect;
mod crash;
mod database_lock;
mod outcome_log;
mod postgres_outage;
mod postgres_start;
mod redis_outage;
#[path = "../service.rs"]
mod service;
mod shutdown;
mod sigstop;
mod stampede;
mod traffic;
mod unknown_outcome;
