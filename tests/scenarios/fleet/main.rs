//! Three instances in one fleet under faults: no committed id is refused, no old value is served.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a scenario's helpers fail the test at once, with a message"
)]

mod clocks;
mod cluster;
mod conns;
mod driver;
mod ledger;
mod network;
mod ordinary;
mod pauses;
mod random;
mod random_faults;
mod redis;
mod restarts;
mod run;
#[expect(dead_code, reason = "shared with other scenarios, which use more of it")]
#[path = "../service.rs"]
mod service;
