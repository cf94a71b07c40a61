//! Deadlines of a write that hold by the clock alone, whatever task has run (rule A6).

use std::time::Duration;

use super::harness::{Harness, MS, RUN_FOR, WINDOW};
use super::quiet;
use super::writer::{Failure, Writer};
use crate::answer::Tier;
use crate::error::WriteError;

// A process that wakes from a pause finds its timer and the database's answer ready at once.
#[tokio::test]
async fn run_is_not_polled_past_its_time_though_it_is_ready() {
    for (late, commits) in [(MS, 1), (Duration::ZERO, 0)] {
        let harness = Harness::with([]).build().await;
        let writer = Writer::begin(&harness, 7).await;
        quiet().await;
        harness.time.advance(RUN_FOR - late);
        writer.send_commit();
        quiet().await;
        assert_eq!(harness.table.version(7), commits, "{late:?} before the end");
        harness.time.advance(late);
        let result = writer.result().await;
        assert!(matches!(result, Err(WriteError::TimedOut { .. })), "{result:?}");
        harness.is_tidy().await;
    }
}

// The task that would close the entry dies with the runtime it was spawned on.
#[tokio::test]
async fn a_write_whose_runtime_is_gone_is_open_until_w_and_no_longer() {
    let harness = Harness::with([7]).build().await;
    let guard = harness.guard.clone();
    let writer = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async move {
            let (started, running) = tokio::sync::oneshot::channel();
            let run = async move {
                let _ = started.send(());
                std::future::pending::<Result<(), Failure>>().await
            };
            tokio::spawn(async move { guard.write(7, run).await });
            running.await.unwrap();
        });
    });
    writer.join().unwrap();
    assert_eq!(harness.open_writes(), 1);
    harness.pass(WINDOW - MS).await;
    harness.table.commit(7);
    for _ in 0..2 {
        assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader), "cached while it is open");
    }
    harness.pass(MS).await;
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Local), "it was to lapse at W");
    assert_eq!(harness.open_writes(), 0);
}
