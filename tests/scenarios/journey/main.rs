//! Scenarios of normal operation: reads, writes, an attack, a second instance.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a scenario's helpers fail the test at once, with a message"
)]

mod attack;
mod client;
mod environment;
mod fleet_command;
mod freshness;
mod gate_size;
mod methods;
mod nulls;
mod random_disconnects;
mod read_your_create;
#[expect(dead_code, reason = "the faults use the rest")]
#[path = "../service.rs"]
mod service;
mod status;
mod two_instances;
mod values;
