//! The explicit form of a write: handles of one key, of several, of several guards.

use std::time::Duration;

use super::failpoints::At;
use super::harness::{Harness, MS, RUN_FOR, SECOND, WINDOW};
use super::store::Faults;
use super::{quiet, until, within};
use crate::answer::Tier;
use crate::error::{AdmitError, EndError};
use crate::ports::Slot;

#[tokio::test]
async fn a_row_written_between_begin_and_end_is_found_at_once() {
    for shared in [false, true] {
        let harness = Harness::with([7]).shared_if(shared).build().await;
        assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
        assert!(harness.refuses(500));
        let (one, other) =
            (harness.guard.begin(7).await.unwrap(), harness.guard.begin(500).await.unwrap());
        assert!(!harness.refuses(500), "not admitted before the commit");
        harness.table.commit(7);
        harness.table.commit(500);
        // While the keys are open, nothing is cached.
        for _ in 0..2 {
            assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader), "shared: {shared}");
        }
        within(one.end()).await.unwrap();
        within(other.end()).await.unwrap();
        assert_eq!(harness.seen(500).await, (Some(1), Tier::Loader));
        assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
        assert_eq!(harness.seen(7).await, (Some(2), Tier::Local));
        harness.is_tidy().await;
    }
}

// Rule A6: the outcome is unknown.
#[tokio::test]
async fn a_handle_that_is_dropped_leaves_its_key_open_until_the_write_window_ends() {
    let harness = Harness::with([7]).shared().build().await;
    drop(harness.guard.begin(7).await.unwrap());
    assert_eq!(harness.status().counts.writes_unknown, 1);
    harness.pass(WINDOW - MS).await;
    assert_eq!(harness.open_writes(), 1);
    harness.table.commit(7);
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
    harness.pass(MS).await;
    assert_eq!(harness.open_writes(), 0);
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Local));
    harness.is_tidy().await;
}

#[tokio::test]
async fn an_end_after_the_write_window_says_so_and_invalidates_all_the_same() {
    let harness = Harness::with([7]).build().await;
    let write = harness.guard.begin(7).await.unwrap();
    assert_eq!(write.time_left(), RUN_FOR);
    harness.pass(WINDOW + SECOND).await;
    assert_eq!(write.time_left(), Duration::ZERO);
    // The entry has lapsed, so the old row is cached again.
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    harness.table.commit(7);
    let late = within(write.end()).await;
    assert!(matches!(late, Err(EndError::TooLate { late }) if late == SECOND), "{late:?}");
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
}

#[tokio::test]
async fn begin_many_begins_all_keys_or_none() {
    let harness = Harness::with([]).shared().build().await;
    let write = harness.guard.begin_many(100..200).await.unwrap();
    assert_eq!(harness.open_writes(), 100);
    assert!((100..200).all(|id| !harness.refuses(id)));
    (100..200).for_each(|id| _ = harness.table.commit(id));
    within(write.end()).await.unwrap();
    assert_eq!(harness.open_writes(), 0);
    assert_eq!(harness.seen(150).await.0, Some(1));
    // With one write intent refused, none of the keys stays open.
    harness.store().faults(Faults { no_put_intent: true, ..Faults::default() });
    let refused = harness.guard.begin_many(300..310).await;
    assert!(matches!(refused, Err(AdmitError::Store(_))), "{refused:?}");
    assert_eq!(harness.open_writes(), 0);
    harness.store().faults(Faults::default());
    harness.is_tidy().await;
}

#[tokio::test]
async fn begin_existing_admits_nothing_and_answers_from_a_proof_of_absence() {
    let harness = Harness::with([7]).build().await;
    let absent = harness.guard.begin_existing(500).await;
    assert!(matches!(absent, Err(AdmitError::Absent)), "{absent:?}");
    assert!(harness.refuses(500));
    let write = harness.guard.begin_existing(7).await.unwrap();
    harness.table.commit(7);
    within(write.end()).await.unwrap();
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
}

// Nothing of the write ran, so nothing needs to stay open.
#[tokio::test]
async fn a_caller_that_departs_during_begin_leaves_no_key_open() {
    let harness = Harness::with([7]).shared().build().await;
    let joining = harness.failpoints.hold(At::BeginOnBackplane);
    let guard = harness.guard.clone();
    let caller = tokio::spawn(async move { guard.begin(7).await.map(drop) });
    joining.arrived().await;
    caller.abort();
    quiet().await;
    joining.let_all_go();
    until("the key is closed", || harness.open_writes() == 0).await;
    assert_eq!(harness.shared_slot(7).await, Slot::Empty);
    assert_eq!(harness.status().counts.writes_unknown, 0);
}

// Rule A7, for End.
#[tokio::test]
async fn a_caller_that_departs_during_end_leaves_no_key_open() {
    let harness = Harness::with([7]).shared().build().await;
    let write = harness.guard.begin(7).await.unwrap();
    harness.table.commit(7);
    let ending = harness.failpoints.hold(At::BeforeClearIntent);
    let caller = tokio::spawn(async move { write.end().await });
    ending.arrived().await;
    caller.abort();
    quiet().await;
    ending.let_all_go();
    until("the key is closed", || harness.open_writes() == 0).await;
    assert_eq!(harness.shared_slot(7).await, Slot::Empty);
    assert_eq!(harness.seen(7).await.0, Some(2));
}

#[tokio::test]
async fn shutdown_waits_for_handles() {
    let harness = Harness::with([7]).build().await;
    let write = harness.guard.begin(7).await.unwrap();
    let guard = harness.guard.clone();
    let down = tokio::spawn(async move { guard.shutdown(10 * SECOND).await });
    harness.pass(SECOND).await;
    assert!(!down.is_finished());
    within(write.end()).await.unwrap();
    assert_eq!(within(down).await.unwrap(), 0);
}
