//! Middleware that stops **cache penetration**: requests for ids that do not exist, which no cache
//! can hold and which therefore all reach the database.
//!
//! # The path of a request
//!
//! ```text
//! request ──key──▶ gate ──maybe──▶ local cache ──miss──▶ flight ──▶ shared cache ──miss──▶ bulkhead ──▶ loader
//!                   │ absent          │                                │                                  │
//!                   ▼                 ▼                                ▼                                  ▼
//!             the app's own 404   row or 404                       row or 404                 publish, row or 404
//! ```
//!
//! 1. The layer, [`http_guard`], takes the key out of the request as the handler's `Path` does.
//!    Code outside of HTTP begins here: [`Guard::check`], [`Guard::get`], [`Guard::get_many`].
//! 2. The gate, [`Gate`], is a keyed Bloom filter of the ids that exist, filled from a [`Source`] at
//!    the start ([`warm_up`]). It answers [`Verdict::Absent`] only with proof, in nanoseconds, and
//!    opens in any doubt ([`OpenReason`]).
//! 3. The local cache holds rows and, for a short time, sentinels of ids that turned out absent.
//! 4. A flight asks on behalf of all who want the same id at the same time.
//! 5. The shared cache ([`Store`], [`RedisStore`]) is what all processes know. It is optional.
//! 6. The bulkhead limits how many loads there are at a time, and for how long they may wait.
//! 7. The [`Loader`] asks the database ([`loader`]).
//!
//! A write walks the other way: [`Guard::write`], [`Guard::create`], [`Guard::update`] and
//! [`Guard::delete`], or [`Guard::begin`] where a transaction can't move into a closure, keep all of
//! these in step with the database, so that what was written is found at once and what was
//! overwritten isn't.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//!
//! use bloomgate::{Answer, Gate, Guard, Tier, loader, warm_up};
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
//! # while !guard.is_ready() { tokio::task::yield_now().await }
//!
//! match guard.get(&2).await? {
//!     Answer::Found { value, .. } => assert_eq!(*value, "name of 2"),
//!     Answer::Absent(_) => unreachable!("2 exists"),
//! }
//! // Once the gate is filled, an absent id costs no load.
//! assert!(matches!(guard.get(&7).await?, Answer::Absent(Tier::Gate)));
//! # Ok(()) }
//! ```
//!
//! [`http_guard`] shows the layer before routes. The repository has a
//! [guide](https://github.com/bloomgate/bloomgate/blob/main/docs/GUIDE.md) that wraps a whole service,
//! and [small programs](https://github.com/bloomgate/bloomgate/tree/main/crates/bloomgate/examples).
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | what it adds |
//! |---|---|
//! | `axum` | the layer with axum 0.8's path parameters, extractor and replies; implies `tower` |
//! | `tower` | the layer alone, for any tower service over HTTP |
//! | `redis` | the shared cache, on Redis 7.0 or later |
//! | `postgres` | source and loader for PostgreSQL, through sqlx 0.9 |
//! | `sqlite` | source and loader for SQLite, through sqlx 0.9, with the SQLite library that the rest of the build asks sqlx for, else the system's |
//! | `sqlite-bundled` | the same, with SQLite compiled in |
//! | `uuid` | `uuid::Uuid` as key |
//! | `anyhow` | [`WriteFailure`] for `anyhow::Error` |
//! | `tokio-postgres` | [`WriteFailure`] for `tokio_postgres::Error` |
//! | `full` | `axum`, `redis`, `postgres`, `sqlite-bundled` and `uuid` |
//! | `testing` | for tests: an in-memory [`Store`], and time that a test moves by hand |
//!
//! Other databases and clients get in through closures: [`loader::from_fn`] and
//! [`warm_up::from_stream`].
//!
#![cfg_attr(feature = "redis", doc = "[`RedisStore`]: RedisStore")]
#![cfg_attr(
    not(feature = "redis"),
    doc = "[`RedisStore`]: https://docs.rs/bloomgate/latest/bloomgate/struct.RedisStore.html"
)]
#![cfg_attr(feature = "tower", doc = "[`http_guard`]: http_guard")]
#![cfg_attr(
    not(feature = "tower"),
    doc = "[`http_guard`]: https://docs.rs/bloomgate/latest/bloomgate/http_guard/index.html"
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

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

/// The code in the README files, which compiles as it is printed.
#[cfg(all(doctest, feature = "axum", feature = "postgres", feature = "redis"))]
mod readme {
    #[doc = include_str!("../../../README.md")]
    struct Repository;

    #[doc = include_str!("../README.md")]
    struct Package;
}
