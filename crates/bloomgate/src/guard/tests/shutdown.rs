//! Shutdown waits for the writes that are running, and for no others.

use super::house::{House, MS, SECOND};
use super::writer::Writer;
use super::{quiet, within};

#[tokio::test]
async fn shutdown_waits_for_running_writes_and_then_leaves() {
    let house = House::with([]).build().await;
    let mut writer = Writer::begin(&house, 7).await;
    // The caller is gone; its write is not.
    writer.leave();
    quiet().await;
    let guard = house.guard.clone();
    let down = tokio::spawn(async move { guard.shutdown(10 * SECOND).await });
    house.pass(SECOND).await;
    assert!(!down.is_finished());
    assert!(!house.company.has_left(), "left while a write was running");
    writer.commit().await;
    writer.finish(Ok(()));
    assert_eq!(within(down).await.unwrap(), 0);
    assert!(house.company.has_left());
    assert_eq!(house.seen(7).await.0, Some(1));
}

#[tokio::test]
async fn shutdown_gives_up_when_its_grace_is_over_and_says_what_was_left() {
    let house = House::with([]).build().await;
    let _writers = [Writer::begin(&house, 7).await, Writer::begin(&house, 8).await];
    let guard = house.guard.clone();
    let down = tokio::spawn(async move { guard.shutdown(10 * SECOND).await });
    house.pass(10 * SECOND - MS).await;
    assert!(!down.is_finished());
    house.pass(MS).await;
    assert_eq!(within(down).await.unwrap(), 2);
    assert!(house.company.has_left());
}

#[tokio::test]
async fn shutdown_does_not_wait_for_writes_that_only_wait_for_w() {
    let house = House::with([]).build().await;
    Writer::begin(&house, 7).await.lose().await;
    assert_eq!(house.open_writes(), 1);
    assert_eq!(within(house.guard.shutdown(10 * SECOND)).await, 0);
}

#[tokio::test]
async fn shutdown_of_an_idle_guard_is_immediate() {
    let house = House::with([]).shared().build().await;
    assert_eq!(within(house.guard.shutdown(10 * SECOND)).await, 0);
}
