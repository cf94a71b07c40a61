//! An instance that may not be alone: gate open, local cache distrusted (promise P2).

use super::failpoints::At;
use super::harness::{Harness, MS, SECOND, WINDOW, seen};
use super::{quiet, until, within};
use crate::answer::{OpenReason, Tier, Verdict};
use crate::ports::{LinkState, Quiesced};

const NOT_ALONE: LinkState = LinkState::OutOfSync(OpenReason::NotAlone);

#[tokio::test]
async fn company_opens_the_gate_and_only_a_new_scan_closes_it() {
    let harness = Harness::with(1..=30).build().await;
    assert!(harness.refuses(500));
    harness.fake_backplane.set(NOT_ALONE);
    quiet().await;
    assert_eq!(harness.guard.check(&500), Verdict::Unknown(OpenReason::NotAlone));
    // The other one writes, and tells nobody.
    harness.rows.commit(500);
    let snapshot = harness.failpoints.hold(At::AfterSnapshot);
    harness.fake_backplane.set(LinkState::InSync);
    snapshot.arrived().await;
    assert_eq!(harness.guard.check(&500), Verdict::Unknown(OpenReason::Rebuilding));
    assert!(harness.guard.is_ready(), "readiness never turns back");
    snapshot.let_all_go();
    until("the gate is closed again", || harness.refuses(501)).await;
    assert!(!harness.refuses(500));
}

#[tokio::test]
async fn a_generation_that_was_being_built_when_company_came_is_discarded() {
    let harness = Harness::with(1..=30).unready();
    let (harness, end) = harness.build_with(|failpoints, _| failpoints.hold(At::BeforeEnd)).await;
    end.arrived().await;
    harness.fake_backplane.set(NOT_ALONE);
    quiet().await;
    harness.rows.commit(500);
    // The scan goes on to its end, if anybody is still listening.
    end.let_all_go();
    quiet().await;
    assert!(!harness.guard.is_ready(), "a generation of before the open_reason was put in service");
    harness.fake_backplane.set(LinkState::InSync);
    harness.pass(SECOND).await;
    until("the gate is closed", || harness.guard.is_ready()).await;
    assert!(!harness.refuses(500));
    assert_eq!(harness.source.scans(), [None, None], "begun anew, not resumed");
}

// Writes of the other one may be under way when it is gone, so the scan waits (rule A8).
#[tokio::test]
async fn after_company_the_scan_waits_for_the_others_writes() {
    let harness = Harness::with(1..=30).build().await;
    harness.source.quiesced(Quiesced::Unknown);
    harness.fake_backplane.set(NOT_ALONE);
    quiet().await;
    harness.fake_backplane.set(LinkState::InSync);
    harness.pass(WINDOW - MS).await;
    assert_eq!(harness.source.scans().len(), 1, "scanned while writes may be under way");
    harness.rows.commit(500);
    harness.pass(MS).await;
    until("the gate is closed again", || harness.refuses(501)).await;
    assert!(!harness.refuses(500));
}

#[tokio::test]
async fn what_was_cached_before_company_came_is_not_served_any_more() {
    let harness = Harness::with([7]).open_gate().build().await;
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    assert_eq!(harness.seen(8).await, (None, Tier::Loader));
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Local));
    assert_eq!(harness.seen(8).await, (None, Tier::Local));
    harness.fake_backplane.set(NOT_ALONE);
    quiet().await;
    harness.rows.commit(7);
    harness.rows.commit(8);
    // In company, every request asks the database, and nothing is kept.
    for _ in 0..2 {
        assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
        assert_eq!(harness.seen(8).await, (Some(1), Tier::Loader));
    }
    harness.fake_backplane.set(LinkState::InSync);
    quiet().await;
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Local));
    assert_eq!(harness.seen(8).await, (Some(1), Tier::Loader));
}

// A load that began in company knows nothing of what the other one wrote after it.
#[tokio::test]
async fn a_load_under_way_when_the_standing_changes_is_not_kept() {
    for (before, after) in [(LinkState::InSync, NOT_ALONE), (NOT_ALONE, LinkState::InSync)] {
        let harness = Harness::with([7]).open_gate().build().await;
        harness.fake_backplane.set(before);
        quiet().await;
        let loaded = harness.failpoints.hold_one(At::AfterLoad);
        let reader = harness.spawn_get(7);
        loaded.arrived().await;
        harness.rows.commit(7);
        harness.fake_backplane.set(after);
        quiet().await;
        harness.fake_backplane.set(LinkState::InSync);
        quiet().await;
        loaded.let_all_go();
        assert_eq!(seen(within(reader).await.unwrap().unwrap()).0, Some(1));
        assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader), "{before:?} to {after:?}");
    }
}

// A standing that was lost and won again between two looks was lost all the same.
#[tokio::test]
async fn a_break_that_is_over_before_anybody_looks_is_a_break() {
    let harness = Harness::with([7]).build().await;
    harness.source.quiesced(Quiesced::Unknown);
    let _ = harness.seen(7).await;
    harness.fake_backplane.set(NOT_ALONE);
    harness.rows.commit(7);
    harness.rows.commit(500);
    harness.fake_backplane.set(LinkState::InSync);
    quiet().await;
    assert!(!harness.refuses(500), "refused under a certificate of before the break");
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
    harness.pass(6 * SECOND).await;
    // What the other one had under way at the break.
    harness.rows.commit(501);
    harness.pass(WINDOW).await;
    until("the gate is closed again", || harness.refuses(502)).await;
    assert!(!harness.refuses(500) && !harness.refuses(501));
}

#[tokio::test]
async fn stale_rows_are_not_served_in_company() {
    let harness = Harness::with([7]).open_gate().build().await;
    let _ = harness.seen(7).await;
    harness.time.advance(super::harness::VALUE_TTL);
    harness.fake_backplane.set(NOT_ALONE);
    quiet().await;
    harness.mishap(7, super::harness::Mishap::Error);
    assert!(harness.get(7).await.is_err());
}
