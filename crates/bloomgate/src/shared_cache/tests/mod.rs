//! One suite for every store, and what only a real Redis can do.

#[cfg(feature = "redis")]
mod breakdown;
mod budget;
mod conformance;
mod ground;
#[cfg(feature = "redis")]
mod mixups;
#[cfg(feature = "redis")]
mod outage;
#[cfg(feature = "redis")]
mod redis_keys;
#[cfg(feature = "redis")]
mod setup;
