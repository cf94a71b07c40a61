//! The example service, as a program that runs.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers that can't do their work fail the test at once, with a message"
)]

mod first_start;
mod fixture;
mod products;
mod refused_settings;
mod secret;
mod servers;
