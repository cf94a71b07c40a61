//! One suite for every store, and what only a real Redis can do.

mod budget;
mod conformance;
#[cfg(feature = "redis")]
mod outage;
#[cfg(feature = "redis")]
mod redis_keys;
#[cfg(feature = "redis")]
mod rejecting_redis;
#[cfg(feature = "redis")]
mod reply_mixups;
#[cfg(feature = "redis")]
mod setup;
mod store_fixture;
