//! The first warm-up and its failures (cases 01 and 35, rule A8).

use std::time::Duration;

use super::failpoints::At;
use super::harness::{Harness, MS, SECOND, WINDOW};
use super::source::Cut;
use super::{quiet, until, within};
use crate::answer::{Answer, OpenReason, Tier, Verdict};
use crate::ports::Quiesced;

/// The gate passes everything, and so refuses none of the rows.
fn is_open(harness: &Harness) {
    for id in harness.table.ids() {
        assert_eq!(harness.guard.check(&id), Verdict::Unknown(OpenReason::Warming), "{id}");
    }
    assert!(!harness.guard.is_ready());
    assert_eq!(harness.status().gate.generation, 0);
}

#[tokio::test]
async fn case_01_an_empty_table_is_warmed_up_at_once_and_refuses_everything() {
    let harness = Harness::with([]).build().await;
    for id in 0..1_000 {
        assert_eq!(harness.seen(id).await, (None, Tier::Gate));
    }
    assert_eq!(harness.loads(), 0);
    harness.write(7).await.unwrap();
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    let passed = (1_000..11_000).filter(|id| !harness.refuses(*id)).count();
    assert!(passed <= 200, "{passed} of 10,000 absent ids pass");
}

/// The scan ends early at 60 %, and again on the way to the end.
async fn is_cut_short(cuts: &[Cut], pause: Duration) {
    let harness = Harness::with(1..=100).unready();
    let (harness, ()) =
        harness.build_with(|_, source| cuts.iter().for_each(|cut| source.cut(*cut))).await;
    for attempt in 1..=cuts.len() {
        until("the scan has begun", || harness.source.scans().len() >= attempt).await;
        quiet().await;
        is_open(&harness);
        // Rows that the scan has passed, and rows that it hasn't reached.
        for id in [1, 60, 61, 100] {
            assert!(matches!(harness.get(id).await, Ok(Answer::Found { .. })));
        }
        // As long as it takes to be given up, if need be, and to be tried again.
        harness.pass(pause).await;
        until_tried_again(&harness, attempt + 1).await;
    }
    until("the gate is closed", || harness.guard.is_ready()).await;
    let scans = harness.source.scans();
    assert_eq!(scans[0], None);
    let resumed_at = scans.last().copied().flatten();
    assert!(resumed_at >= Some(60), "resumed at the checkpoint, not at the start: {scans:?}");
    assert!((1..=100).all(|id| !harness.refuses(id)));
    assert!((1_000..2_000).filter(|id| !harness.refuses(*id)).count() < 20);
    assert_eq!(harness.status().warm_up_error, None);
}

async fn until_tried_again(harness: &Harness, attempts: usize) {
    for _ in 0..100 {
        if harness.source.scans().len() >= attempts {
            return;
        }
        harness.pass(200 * MS).await;
    }
    panic!("not tried again");
}

#[tokio::test]
async fn case_35_a_scan_that_fails_at_60_percent_is_resumed_and_never_activated_before_its_end() {
    is_cut_short(&[Cut::Error(60)], MS).await;
    // A row that can't be decoded, in the middle of a chunk: what came before it in the chunk is
    // handed over again.
    is_cut_short(&[Cut::Error(67)], MS).await;
    // Again and again.
    is_cut_short(&[Cut::Error(65), Cut::Error(12), Cut::Error(3)], MS).await;
}

// Every key was handed over, but not the explicit end.
#[tokio::test]
async fn case_35_a_scan_without_an_explicit_end_is_not_activated() {
    is_cut_short(&[Cut::Error(1_000)], MS).await;
    is_cut_short(&[Cut::Stall(1_000)], 60 * SECOND).await;
}

#[tokio::test]
async fn case_35_a_scan_that_stalls_is_given_up_and_resumed() {
    is_cut_short(&[Cut::Stall(60)], 60 * SECOND).await;
}

#[tokio::test]
async fn case_35_a_failed_scan_says_so() {
    let harness = Harness::with(1..=100).unready();
    let (harness, ()) = harness.build_with(|_, source| source.cut(Cut::Error(60))).await;
    quiet().await;
    let error = harness.status().warm_up_error.unwrap();
    assert!(error.contains("the connection was lost"), "{error}");
    assert!(harness.guard.unready_reason().contains("the connection was lost"));
    is_open(&harness);
}

// A write between the attempts is in the generation that goes on being filled.
#[tokio::test]
async fn case_36_a_write_between_a_failed_scan_and_its_resumption_is_kept() {
    let harness = Harness::with((1..=100).map(|id| id * 10)).unready();
    let (harness, ()) = harness.build_with(|_, source| source.cut(Cut::Error(60))).await;
    quiet().await;
    // Below the checkpoint, which the resumed scan doesn't read again.
    harness.write(5).await.unwrap();
    harness.pass(SECOND).await;
    until("the gate is closed", || harness.guard.is_ready()).await;
    assert_eq!(harness.source.scans(), [None, Some(600)]);
    assert!(!harness.refuses(5));
}

#[tokio::test]
async fn case_35_a_rebuild_that_is_cut_short_leaves_the_old_generation_in_service() {
    let harness = Harness::with(1..=100).build().await;
    harness.source.cut(Cut::Error(60));
    let guard = harness.guard.clone();
    let rebuilding = tokio::spawn(async move { guard.rebuild().await });
    until("the scan has begun", || harness.source.scans().len() == 2).await;
    quiet().await;
    assert_eq!(harness.status().gate.generation, 1);
    assert!(harness.status().gate.building);
    assert!((1..=100).all(|id| !harness.refuses(id)));
    assert!(harness.refuses(5_000) || harness.refuses(5_001));
    harness.pass(SECOND).await;
    within(rebuilding).await.unwrap().unwrap();
    assert_eq!(harness.status().gate.generation, 2);
    assert!(!harness.status().gate.building);
    assert!((1..=100).all(|id| !harness.refuses(id)));
}

// Case 35 (c), dropped in the middle, and what was dropped doesn't come back.
#[tokio::test]
async fn case_35_a_scan_that_is_dropped_is_not_activated() {
    let harness = Harness::with(1..=100).unready();
    let (harness, chunk) =
        harness.build_with(|failpoints, _| failpoints.hold(At::BeforeChunk)).await;
    chunk.arrived().await;
    harness.fake_backplane.lose_link();
    harness.fake_backplane.events().void(OpenReason::LinkLost);
    quiet().await;
    assert!(!harness.status().gate.building, "the generation was to go with its scan");
    chunk.let_all_go();
    harness.pass(10 * SECOND).await;
    assert_eq!(harness.status().gate.generation, 0);
    for id in 1..=100 {
        assert_eq!(harness.guard.check(&id), Verdict::Unknown(OpenReason::LinkLost));
    }
}

// Rule A8: a killed predecessor may have a COMMIT under way for as long as W.
#[tokio::test]
async fn a_database_of_unknown_state_is_scanned_no_earlier_than_the_write_window_after_the_start() {
    let harness = Harness::with(1..=100).unready();
    let (harness, ()) = harness.build_with(|_, source| source.quiesced(Quiesced::Unknown)).await;
    harness.pass(WINDOW - MS).await;
    assert!(harness.source.scans().is_empty(), "scanned before W was over");
    is_open(&harness);
    // The predecessor's last commit.
    harness.table.commit(500);
    harness.pass(MS).await;
    until("the gate is closed", || harness.guard.is_ready()).await;
    assert!(!harness.refuses(500));
    assert_eq!(harness.source.quiesces(), 1);
}

#[tokio::test]
async fn a_database_that_has_quiesced_is_scanned_at_once() {
    let harness = Harness::with(1..=100).unready();
    let (harness, quiescing) =
        harness.build_with(|failpoints, _| failpoints.hold(At::Quiescing)).await;
    quiescing.arrived().await;
    quiet().await;
    assert!(harness.source.scans().is_empty(), "scanned before the database had quiesced");
    is_open(&harness);
    harness.table.commit(500);
    quiescing.let_all_go();
    until("the gate is closed", || harness.guard.is_ready()).await;
    assert!(!harness.refuses(500));
}

#[tokio::test]
async fn a_drained_database_needs_no_wait() {
    let harness = Harness::with(1..=100).build().await;
    assert_eq!(harness.clock.unix_ms(), crate::clock::Clock::manual().0.unix_ms());
    assert_eq!(harness.source.quiesces(), 1);
}

#[tokio::test]
async fn an_error_is_no_answer_to_whether_writes_have_ended() {
    let harness = Harness::with(1..=100).unready();
    let (harness, ()) = harness.build_with(|_, source| source.quiesce_errors(2)).await;
    quiet().await;
    assert!(harness.source.scans().is_empty());
    assert!(harness.status().warm_up_error.unwrap().contains("earlier writes"));
    for _ in 0..4 {
        harness.pass(200 * MS).await;
    }
    until("the gate is closed", || harness.guard.is_ready()).await;
    assert_eq!(harness.source.quiesces(), 3, "asked again");
}

#[tokio::test]
async fn a_database_that_fails_to_quiesce_is_scanned_after_the_write_window() {
    let harness = Harness::with(1..=100).unready();
    let (harness, ()) = harness.build_with(|_, source| source.quiesce_errors(usize::MAX)).await;
    for _ in 0..29 {
        harness.pass(SECOND).await;
    }
    assert!(harness.source.scans().is_empty());
    harness.pass(SECOND).await;
    until("the gate is closed", || harness.guard.is_ready()).await;
}

// A rebuild by request needs no such wait: this process knows its own open writes.
#[tokio::test]
async fn a_rebuild_of_an_undoubted_gate_does_not_wait_for_the_window() {
    let harness = Harness::with(1..=100).build().await;
    harness.source.quiesced(Quiesced::Unknown);
    within(harness.guard.rebuild()).await.unwrap();
    assert_eq!(harness.source.quiesces(), 1);
}

// Rule A8 for the caches: what is read while a killed predecessor's COMMIT may be on its way isn't
// kept, here or in the shared cache, and not by a load that is under way when the wait is over.
#[tokio::test]
async fn until_a_predecessors_writes_have_ended_nothing_is_cached() {
    for shared in [false, true] {
        let harness = Harness::with([7]).open_gate().shared_if(shared).unready();
        let (harness, ()) =
            harness.build_with(|_, source| source.quiesced(Quiesced::Unknown)).await;
        for _ in 0..2 {
            assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader), "shared: {shared}");
            assert_eq!(harness.seen(8).await, (None, Tier::Loader), "shared: {shared}");
        }
        quiet().await;
        if shared {
            assert!(harness.store().memory().is_empty(), "a row, a sentinel or a lease was left");
        }
        harness.pass(WINDOW - MS).await;
        let loaded = harness.failpoints.hold_one(At::AfterLoad);
        let late = harness.spawn_get(8);
        loaded.arrived().await;
        harness.table.commit(7);
        harness.table.commit(8);
        harness.pass(MS).await;
        loaded.let_all_go();
        let _ = within(late).await.unwrap().unwrap();
        quiet().await;
        for id in [7, 8] {
            let now = harness.table.get(id).map(|row| row.version);
            assert_eq!(harness.seen(id).await, (now, Tier::Loader), "shared: {shared}");
            assert_eq!(harness.seen(id).await, (now, Tier::Local), "shared: {shared}");
        }
        harness.is_tidy().await;
    }
}
