//! Integration tests of both Bloom filters with every hash algorithm.

#![expect(clippy::unwrap_used, reason = "a failure fails the test")]

mod concurrent_inserts;
mod fixtures;
mod rates;
mod statistics;
