//! Shutdown waits for the writes that are running, and for no others.

use super::harness::{Harness, MS, SECOND};
use super::writer::Writer;
use super::{quiet, within};
use crate::answer::{OpenReason, Verdict};
use crate::error::{AdmitError, WriteError};

#[tokio::test]
async fn shutdown_waits_for_running_writes_and_then_leaves() {
    let harness = Harness::with([]).build().await;
    let mut writer = Writer::begin(&harness, 7).await;
    // The caller is gone; its write is not.
    writer.leave();
    quiet().await;
    let guard = harness.guard.clone();
    let down = tokio::spawn(async move { guard.shutdown(10 * SECOND).await });
    harness.pass(SECOND).await;
    assert!(!down.is_finished());
    assert!(!harness.fake_backplane.has_left(), "left while a write was running");
    writer.commit().await;
    writer.finish(Ok(()));
    assert_eq!(within(down).await.unwrap(), 0);
    assert!(harness.fake_backplane.has_left());
    assert_eq!(harness.seen(7).await.0, Some(1));
}

#[tokio::test]
async fn shutdown_gives_up_when_its_grace_is_over_and_says_what_was_left() {
    let harness = Harness::with([]).build().await;
    let _writers = [Writer::begin(&harness, 7).await, Writer::begin(&harness, 8).await];
    let guard = harness.guard.clone();
    let down = tokio::spawn(async move { guard.shutdown(10 * SECOND).await });
    harness.pass(10 * SECOND - MS).await;
    assert!(!down.is_finished());
    harness.pass(MS).await;
    assert_eq!(within(down).await.unwrap(), 2);
    assert!(harness.fake_backplane.has_left());
}

#[tokio::test]
async fn shutdown_does_not_wait_for_writes_that_only_wait_for_w() {
    let harness = Harness::with([]).build().await;
    Writer::begin(&harness, 7).await.lose().await;
    assert_eq!(harness.open_writes(), 1);
    assert_eq!(within(harness.guard.shutdown(10 * SECOND)).await, 0);
}

#[tokio::test]
async fn shutdown_of_an_idle_guard_is_immediate() {
    let harness = Harness::with([]).shared().build().await;
    assert_eq!(within(harness.guard.shutdown(10 * SECOND)).await, 0);
}

// Rule A7: stops refusing first, then takes no new writes.
#[tokio::test]
async fn shutdown_opens_the_gate_and_takes_no_new_writes_before_it_waits() {
    let harness = Harness::with([]).build().await;
    assert!(harness.refuses(500));
    let writer = Writer::begin(&harness, 7).await;
    let guard = harness.guard.clone();
    let down = tokio::spawn(async move { guard.shutdown(10 * SECOND).await });
    quiet().await;
    assert_eq!(harness.guard.check(&500), Verdict::Unknown(OpenReason::ShuttingDown));
    let refused = harness.write(8).await;
    assert!(
        matches!(refused, Err(WriteError::Begin(AdmitError::ShuttingDown))),
        "a write began: {refused:?}"
    );
    assert!(matches!(harness.guard.begin(8).await, Err(AdmitError::ShuttingDown)));
    assert_eq!(harness.table.get(8), None);
    writer.end().await;
    assert_eq!(within(down).await.unwrap(), 0);
    assert_eq!(harness.seen(7).await.0, None);
}
