//! Middleware that failpoints **cache penetration**: requests for ids that do not exist, which no cache
//! can hold and which therefore all reach the database.
//!
//! ```text
//! request ──key──▶ gate ──maybe──▶ local cache ──miss──▶ flight ──▶ shared cache ──miss──▶ bulkhead ──▶ loader
//!                   │ absent          │                                │                                  │
//!                   ▼                 ▼                                ▼                                  ▼
//!             the app's own 404   row or 404                       row or 404                 publish, row or 404
//! ```
//!
//! - [`Gate`]: a keyed Bloom filter of the ids that exist, filled from a [`Source`] at the start.
//!   It answers [`Verdict::Absent`] only with proof, in nanoseconds, and opens in any doubt.
//! - The local cache holds rows and, for a short time, sentinels of ids that turned out absent.
//! - A flight asks on behalf of all who want the same id at the same time.
//! - The shared cache ([`Store`], [`RedisStore`]) is what all processes know.
//! - The [`Loader`] asks the database, a limited number of times at once.
//!
//! A write walks the other way: [`Guard::write`], [`Guard::create`], [`Guard::update`] and
//! [`Guard::delete`] keep all of these in step with the database, so that what was written is found
//! at once and what was overwritten isn't.
//!
//! ```
//! use std::time::Duration;
//!
//! use bloomgate::{Answer, Gate, Guard, loader, warm_up};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let guard: Guard<i64, String> = Guard::builder("names")
//!     .gate(Gate::bloom().false_positive_rate(0.001))
//!     .source(warm_up::Keys::new([1_i64, 2, 3]))
//!     .loader(loader::from_fn(|id: i64| async move {
//!         Ok::<_, std::io::Error>((id <= 3).then(|| format!("name of {id}")))
//!     }))
//!     .null_ttl(Duration::from_secs(30))
//!     .build()
//!     .await?;
//!
//! match guard.get(&2).await? {
//!     Answer::Found { value, .. } => assert_eq!(*value, "name of 2"),
//!     Answer::Absent(_) => unreachable!("2 exists"),
//! }
//! # Ok(()) }
//! ```
//!
//! # Features
//!
//! None is on by default. `tower`: the layer, for any tower service over HTTP. `axum`: the layer with
//! axum's path parameters, extractor and replies. `redis`: the shared cache. `postgres`, `sqlite`:
//! sources and loaders. `uuid`: UUIDs as keys. `full`: all of these. `testing`: an in-memory store.

pub mod answer;
pub mod backplane;
pub mod clock;
mod error;
mod flight;
mod gate;
mod guard;
#[cfg(feature = "tower")]
pub mod http_guard;
pub mod key;
pub mod loader;
mod local_cache;
pub mod ports;
pub mod shared_cache;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub mod sql;
pub mod telemetry;
pub mod warm_up;

pub use answer::{Answer, OpenReason, Tier, Verdict};
pub use bloomgate_filter::{HashAlgorithm, Secret};
pub use clock::Clock;
pub use error::{
    AdmitError, BackplaneError, BoxError, ConfigError, CreateError, EndError, InvalidateError,
    Known, ReadError, RebuildError, SourceError, StoreError, StoreErrorKind, Unknown, WriteError,
    WriteFailure,
};
pub use gate::Gate;
pub use guard::{
    Admit, Admitted, GateOnly, Guard, GuardBuilder, GuardKind, OnStoreFailure, Value, WriteHandle,
};
#[cfg(feature = "tower")]
pub use http_guard::GuardLayer;
#[cfg(feature = "axum")]
pub use http_guard::{Guarded, path_param};
pub use key::{CanonicalText, Key, ParseKey};
pub use ports::{Backplane, Loader, Source, Store};
#[cfg(feature = "redis")]
pub use shared_cache::RedisStore;
