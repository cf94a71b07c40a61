//! Tests of the shared cache: one suite for every store, further ones for Redis.

#[cfg(feature = "redis")]
mod batches;
mod budget;
mod conformance;
mod faulty_store;
mod fleet_log;
#[cfg(feature = "redis")]
mod outage;
mod outage_log;
#[cfg(feature = "redis")]
mod redis_keys;
#[cfg(feature = "redis")]
mod rejecting_redis;
#[cfg(feature = "redis")]
mod reply_mixups;
#[cfg(feature = "redis")]
mod setup;
mod store_fixture;
