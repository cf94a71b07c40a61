//! Invalidation of what was changed behind the guard's back.

use super::failpoints::At;
use super::harness::{Harness, seen};
use super::store::Faults;
use super::writer::Writer;
use super::{quiet, within};
use crate::answer::Tier;
use crate::error::{AdmitError, InvalidateError};
use crate::ports::Slot;

#[tokio::test]
async fn a_row_changed_elsewhere_is_found_after_its_key_is_invalidated() {
    for shared in [false, true] {
        let harness = Harness::with([7]).shared_if(shared).build().await;
        assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
        harness.table.commit(7);
        harness.table.commit(500);
        assert_eq!(harness.seen(7).await, (Some(1), Tier::Local), "nothing said otherwise");
        within(harness.guard.invalidate(&7)).await.unwrap();
        assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader), "shared: {shared}");
        // A row that was inserted is admitted.
        assert!(harness.refuses(500));
        within(harness.guard.invalidate(&500)).await.unwrap();
        assert_eq!(harness.seen(500).await, (Some(1), Tier::Loader));
        harness.is_tidy().await;
    }
}

// Rule A3: it is a write like any other.
#[tokio::test]
async fn a_load_that_began_before_an_invalidation_is_not_kept() {
    for shared in [false, true] {
        let harness = Harness::with([7]).shared_if(shared).build().await;
        let loaded = harness.failpoints.hold_one(At::AfterLoad);
        let reader = harness.spawn_get(7);
        loaded.arrived().await;
        harness.table.commit(7);
        within(harness.guard.invalidate(&7)).await.unwrap();
        loaded.let_all_go();
        assert_eq!(seen(within(reader).await.unwrap().unwrap()).0, Some(1));
        assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader), "shared: {shared}");
    }
}

#[tokio::test]
async fn an_invalidation_that_the_shared_cache_refuses_is_an_error() {
    let harness = Harness::with([7]).shared().build().await;
    harness.store().faults(Faults { down: true, ..Faults::default() });
    let refused = within(harness.guard.invalidate(&7)).await;
    assert!(matches!(refused, Err(AdmitError::Store(_))), "{refused:?}");
    let refused = within(harness.guard.invalidate_all()).await;
    assert!(matches!(refused, Err(InvalidateError::Store(_))), "{refused:?}");
}

#[tokio::test]
async fn invalidate_where_picks_among_the_keys_in_hand() {
    let harness = Harness::with(1..=20).shared().open_gate().build().await;
    for id in 1..=25 {
        let _ = harness.seen(id).await;
    }
    (1..=25).for_each(|id| _ = harness.table.commit(id));
    // Rows and sentinels alike.
    let picked = within(harness.guard.invalidate_where(|id| id % 5 == 0)).await.unwrap();
    assert_eq!(picked, 5);
    for id in 1..=25 {
        let expected = match id {
            _ if id % 5 == 0 => Tier::Loader,
            _ => Tier::Local,
        };
        assert_eq!(harness.seen(id).await.1, expected, "{id}");
    }
    assert_eq!(harness.seen(25).await.0, Some(1));
    assert_eq!(harness.seen(20).await.0, Some(2));
}

#[tokio::test]
async fn invalidate_all_reaches_every_cache_and_spares_open_writes() {
    let harness = Harness::with(1..=20).shared().build().await;
    for id in 1..=20 {
        let _ = harness.seen(id).await;
    }
    let peer = harness.peer().await;
    quiet().await;
    assert_eq!(seen(within(peer.get(&3)).await.unwrap()).1, Tier::Shared);
    let writer = Writer::begin(&harness, 7).await;
    (1..=20).for_each(|id| _ = harness.table.commit(id));
    within(harness.guard.invalidate_all()).await.unwrap();
    assert_eq!(harness.shared_slot(7).await, Slot::WriteIntent);
    for id in 1..=20 {
        assert_eq!(harness.seen(id).await, (Some(2), Tier::Loader), "{id}");
    }
    writer.end().await;
    harness.is_tidy().await;
}

// Rule A3, at End: what a flight copies from the shared cache while it is being cleared.
#[tokio::test]
async fn a_shared_hit_on_its_way_while_everything_is_invalidated_is_not_kept() {
    let harness = Harness::with([7]).shared().build().await;
    let _ = harness.seen(7).await;
    harness.guard.0.local.invalidate_all();
    let read = harness.failpoints.hold_one(At::AfterRead);
    let reader = harness.spawn_get(7);
    read.arrived().await;
    harness.table.commit(7);
    within(harness.guard.invalidate_all()).await.unwrap();
    read.let_all_go();
    assert_eq!(seen(within(reader).await.unwrap().unwrap()).0, Some(1));
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
}
