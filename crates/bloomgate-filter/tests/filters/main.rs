//! What both Bloom filters promise, whatever the hash.

#![expect(clippy::unwrap_used, reason = "what goes wrong fails the test")]

mod fullness;
mod kinds;
mod rates;
mod threads;
