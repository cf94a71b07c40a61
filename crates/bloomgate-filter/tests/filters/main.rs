//! What both Bloom filters promise, whatever the hash.

#![expect(clippy::unwrap_used, reason = "what goes wrong fails the test")]

mod concurrent_inserts;
mod fixtures;
mod rates;
mod statistics;
