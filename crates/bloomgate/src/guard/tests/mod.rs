//! Tests of the protocol: a real guard over doubles that can be held up at each step.

mod allow_stale;
mod begin;
mod builder;
#[cfg(feature = "redis")]
mod copies;
mod create;
mod departing_callers;
mod failpoints;
mod fake_backplane;
mod fake_table;
#[cfg(feature = "redis")]
mod fleet;
mod handle;
mod harness;
mod interleavings;
mod invalidate;
mod leases;
mod limits;
mod link;
mod load_race;
mod long_run;
mod nulls;
mod overfull;
mod publish_stress;
mod readiness;
#[cfg(all(feature = "postgres", feature = "redis", feature = "sqlite"))]
mod real_servers;
mod rebuild;
mod schemas;
mod shutdown;
mod source;
mod spans;
mod store;
mod ttl;
mod unknown;
mod values;
mod warm_up;
mod write_deadline;
mod writer;

use std::future::Future;
use std::time::Duration;

/// Ends a hang with a panic.
async fn within<F: Future>(work: F) -> F::Output {
    let ceiling = Duration::from_secs(20);
    tokio::time::timeout(ceiling, work).await.expect("this hangs")
}

/// Lets every task run until none has anything left to do without a signal or the clock.
async fn quiet() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Waits until the condition holds.
async fn until(what: &str, so: impl Fn() -> bool) {
    for _ in 0..100_000 {
        if so() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("this never came true: {what}");
}
