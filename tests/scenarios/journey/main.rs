//! What users do: read, write, attack, scale out by accident.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a scenario's helpers fail the test at once, with a message"
)]

mod attack;
mod bed;
mod births;
mod client;
mod company;
mod departures;
mod freshness;
mod gate_size;
mod methods;
mod nulls;
#[expect(dead_code, reason = "it is enough that it compiles")]
mod readme;
#[expect(dead_code, reason = "the faults use the rest")]
#[path = "../service.rs"]
mod service;
mod status;
mod values;
