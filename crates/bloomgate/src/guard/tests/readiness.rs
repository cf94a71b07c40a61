//! Readiness: as soon as the service can answer correctly.

use super::failpoints::At;
use super::harness::{Harness, MS, SECOND};
use super::{quiet, until};
use crate::answer::OpenReason;
use crate::ports::{LinkState, Quiesced};

#[tokio::test]
async fn a_guard_waits_for_its_first_warm_up_and_no_longer_than_it_was_given() {
    let harness = Harness::with(1..=30).unready().tune(|guard| guard.ready_within(5 * SECOND));
    let (harness, end) = harness.build_with(|failpoints, _| failpoints.hold(At::BeforeEnd)).await;
    end.arrived().await;
    harness.pass(5 * SECOND - MS).await;
    assert!(!harness.guard.is_ready());
    let reason = harness.guard.unready_reason();
    assert!(reason.contains("warm-up") && reason.contains("30 keys read"), "{reason}");
    harness.pass(MS).await;
    assert!(harness.guard.is_ready());
    assert_eq!(harness.guard.unready_reason(), "");
    let status = harness.status();
    assert!(status.ready);
    assert_eq!(status.gate.reason.as_deref(), Some("warming"), "the gate's state stands beside it");
    // It answers, with an open gate.
    assert_eq!(harness.seen(7).await.0, Some(1));
    assert_eq!(harness.seen(500).await.0, None);
    end.let_all_go();
    until("the gate refuses", || harness.refuses(500)).await;
}

#[tokio::test]
async fn a_warm_up_that_is_quick_makes_a_guard_ready_at_once() {
    let harness = Harness::with(1..=30).build().await;
    assert!(harness.guard.is_ready() && harness.refuses(500));
}

// A replacement must not wait for its predecessor to leave.
#[tokio::test]
async fn case_60_a_guard_without_a_link_is_ready_at_once_and_stays_so() {
    let harness = Harness::with(1..=30).unready();
    let (harness, _end) = harness.build_with(|failpoints, _| failpoints.hold(At::BeforeEnd)).await;
    quiet().await;
    assert!(!harness.guard.is_ready());
    harness.fake_backplane.lose_link();
    assert!(harness.guard.is_ready());
    assert_eq!(harness.status().gate.reason.as_deref(), Some("link_lost"));
    harness.fake_backplane.set_link(LinkState::OutOfSync(OpenReason::Joining));
    assert!(harness.guard.is_ready(), "readiness never turns back");
}

#[tokio::test]
async fn a_gate_forced_open_is_ready_once_its_caches_work() {
    let harness = Harness::with([7]).open_gate().unready();
    let (harness, ()) = harness.build_with(|_, source| source.quiesced(Quiesced::Unknown)).await;
    quiet().await;
    assert!(!harness.guard.is_ready());
    assert!(harness.guard.unready_reason().contains("before the start"));
    harness.pass(super::harness::WINDOW).await;
    assert!(harness.guard.is_ready());
}
