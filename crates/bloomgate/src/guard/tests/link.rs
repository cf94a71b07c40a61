//! The link to other instances: lost, found, leased, void (promise P2, rule C20).

use super::failpoints::At;
use super::fake_backplane::IN_SYNC;
use super::harness::{Harness, MS, SECOND, WINDOW, seen};
use super::{quiet, until, within};
use crate::answer::{OpenReason, Tier, Verdict};
use crate::clock::Moment;
use crate::ports::{LinkState, PeerWrite, Quiesced, WriteId};

#[tokio::test]
async fn a_link_that_missed_writes_opens_the_gate_and_only_a_new_scan_closes_it() {
    let harness = Harness::with(1..=30).build().await;
    assert!(harness.refuses(500));
    harness.fake_backplane.lose_link();
    quiet().await;
    assert_eq!(harness.guard.check(&500), Verdict::Unknown(OpenReason::LinkLost));
    // Another instance writes, and nothing is delivered.
    harness.table.commit(500);
    let snapshot = harness.failpoints.hold(At::AfterSnapshot);
    harness.fake_backplane.resync_link();
    snapshot.arrived().await;
    assert_eq!(harness.guard.check(&500), Verdict::Unknown(OpenReason::Rebuilding));
    assert!(harness.guard.is_ready(), "readiness never turns back");
    snapshot.let_all_go();
    until("the gate is closed again", || harness.refuses(501)).await;
    assert!(!harness.refuses(500));
}

#[tokio::test]
async fn a_generation_that_was_being_built_when_the_link_was_lost_is_never_trusted() {
    let harness = Harness::with(1..=30).unready();
    let (harness, end) = harness.build_with(|failpoints, _| failpoints.hold(At::BeforeEnd)).await;
    end.arrived().await;
    harness.fake_backplane.lose_link();
    quiet().await;
    harness.table.commit(500);
    end.let_all_go();
    quiet().await;
    assert!(!harness.refuses(500) && !harness.refuses(501));
    harness.fake_backplane.resync_link();
    assert!(!harness.refuses(500), "a generation of before the void was trusted");
    harness.pass(SECOND).await;
    until("the gate is closed", || harness.refuses(501)).await;
    assert!(!harness.refuses(500));
    assert_eq!(harness.source.scans(), [None, None], "begun anew, not resumed");
}

// Writes of others may be under way when the link is back, so the scan waits (rule A8).
#[tokio::test]
async fn after_a_resync_the_scan_waits_for_the_writes_of_others() {
    let harness = Harness::with(1..=30).build().await;
    harness.source.quiesced(Quiesced::Unknown);
    harness.fake_backplane.lose_link();
    quiet().await;
    harness.fake_backplane.resync_link();
    harness.pass(WINDOW - MS).await;
    assert_eq!(harness.source.scans().len(), 1, "scanned while writes may be under way");
    harness.table.commit(500);
    harness.pass(MS).await;
    until("the gate is closed again", || harness.refuses(501)).await;
    assert!(!harness.refuses(500));
}

#[tokio::test]
async fn what_was_cached_before_the_link_was_lost_is_not_served_any_more() {
    let harness = Harness::with([7]).open_gate().build().await;
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    assert_eq!(harness.seen(8).await, (None, Tier::Loader));
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Local));
    assert_eq!(harness.seen(8).await, (None, Tier::Local));
    harness.fake_backplane.lose_link();
    quiet().await;
    harness.table.commit(7);
    harness.table.commit(8);
    // Without a link, every request asks the database, and nothing is kept.
    for _ in 0..2 {
        assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
        assert_eq!(harness.seen(8).await, (Some(1), Tier::Loader));
    }
    harness.fake_backplane.resync_link();
    quiet().await;
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Local));
    assert_eq!(harness.seen(8).await, (Some(1), Tier::Loader));
}

// A load that began without a link knows nothing of what others wrote after it.
#[tokio::test]
async fn a_load_under_way_when_the_link_changes_is_not_kept() {
    for lost_before in [false, true] {
        let harness = Harness::with([7]).open_gate().build().await;
        if lost_before {
            harness.fake_backplane.lose_link();
        }
        quiet().await;
        let loaded = harness.failpoints.hold_one(At::AfterLoad);
        let reader = harness.spawn_get(7);
        loaded.arrived().await;
        harness.table.commit(7);
        if !lost_before {
            harness.fake_backplane.lose_link();
        }
        quiet().await;
        harness.fake_backplane.resync_link();
        quiet().await;
        loaded.let_all_go();
        assert_eq!(seen(within(reader).await.unwrap().unwrap()).0, Some(1));
        assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader), "lost before: {lost_before}");
    }
}

#[tokio::test]
async fn a_loss_that_is_over_at_once_is_a_loss() {
    let harness = Harness::with([7]).build().await;
    harness.source.quiesced(Quiesced::Unknown);
    let _ = harness.seen(7).await;
    harness.fake_backplane.lose_link();
    harness.table.commit(7);
    harness.table.commit(500);
    harness.fake_backplane.resync_link();
    quiet().await;
    assert!(!harness.refuses(500), "refused under a certificate of before the loss");
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
    harness.pass(6 * SECOND).await;
    // What another one had under way meanwhile.
    harness.table.commit(501);
    harness.pass(WINDOW).await;
    until("the gate is closed again", || harness.refuses(502)).await;
    assert!(!harness.refuses(500) && !harness.refuses(501));
}

#[tokio::test]
async fn stale_rows_are_not_served_without_a_link() {
    let harness = Harness::with([7]).open_gate().build().await;
    let _ = harness.seen(7).await;
    harness.time.advance(super::harness::VALUE_TTL);
    harness.fake_backplane.lose_link();
    quiet().await;
    harness.mishap(7, super::harness::Mishap::Error);
    assert!(harness.get(7).await.is_err());
}

#[tokio::test]
async fn a_link_that_is_lost_and_found_keeps_the_gate_and_takes_what_was_delivered() {
    let harness = Harness::with([7]).build().await;
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    harness.fake_backplane.set_link(LinkState::OutOfSync(OpenReason::LinkLost));
    assert_eq!(harness.guard.check(&500), Verdict::Unknown(OpenReason::LinkLost));
    // Nothing is served as fresh meanwhile, and nothing kept.
    for _ in 0..2 {
        assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    }
    for id in [7, 500] {
        harness.table.commit(id);
        let write = peer_write(id, harness.clock.now() + WINDOW);
        harness.fake_backplane.events().begin(&write).unwrap();
        harness.fake_backplane.events().end(&write);
    }
    harness.fake_backplane.set_link(IN_SYNC);
    assert!(harness.refuses(501), "the gate needs no rebuild");
    assert_eq!(harness.seen(500).await, (Some(1), Tier::Loader));
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Local));
    assert_eq!(harness.source.scans().len(), 1);
}

fn peer_write(id: i64, deadline: Moment) -> PeerWrite {
    PeerWrite::new(crate::key::KeyBytes::of(&id), WriteId::fresh(), true, deadline)
}

// Rules A13, C20: while another instance has a write of the key open, nothing is cached.
#[tokio::test]
async fn a_key_that_another_instance_writes_bypasses_the_caches_until_its_end() {
    let harness = Harness::with([7]).build().await;
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    let write = peer_write(7, harness.clock.now() + WINDOW);
    harness.fake_backplane.events().begin(&write).unwrap();
    for _ in 0..2 {
        assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    }
    harness.table.commit(7);
    harness.fake_backplane.events().end(&write);
    assert_eq!(harness.seen(7).await.0, Some(2));
    harness.is_tidy().await;
}

#[tokio::test]
async fn a_peers_write_that_never_ends_lapses_at_its_deadline() {
    let harness = Harness::with([7]).build().await;
    let write = peer_write(7, harness.clock.now() + WINDOW);
    harness.fake_backplane.events().begin(&write).unwrap();
    harness.pass(WINDOW).await;
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Local));
    assert_eq!(harness.open_writes(), 0);
}

// Rule C20: the clock alone ends a lease, before any task has run.
#[tokio::test]
async fn after_a_pause_nothing_is_refused_and_nothing_served_as_fresh() {
    let harness = Harness::with([7]).build().await;
    let lease = || LinkState::InSync { until: harness.clock.now() + 3 * SECOND };
    harness.fake_backplane.set_link(lease());
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Local));
    assert!(harness.refuses(500));
    harness.time.advance(40 * SECOND);
    harness.table.commit(7);
    harness.table.commit(500);
    assert_eq!(harness.guard.check(&500), Verdict::Unknown(OpenReason::LeaseEnded));
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
    assert_eq!(harness.seen(500).await, (Some(1), Tier::Loader));
    assert!(harness.guard.is_ready(), "readiness never turns back");
}

#[tokio::test]
async fn another_epoch_puts_every_entry_of_the_old_one_out_of_reach() {
    let harness = Harness::with([7]).shared().build().await;
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    harness.table.commit(7);
    harness.fake_backplane.events().set_epoch("2");
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Local));
}
