//! Sentinels: exact hit counts, never from an error, never in the way of a row that is created
//! (cases 24, 26 and 27, promise P4).

use super::failpoints::At;
use super::harness::{Harness, MS, Mishap, NULL_TTL, SECOND, seen};
use super::{quiet, until, within};
use crate::answer::{Answer, OpenReason, Tier};
use crate::error::ReadError;
use crate::ports::Slot;

#[tokio::test]
async fn case_26_a_false_positive_costs_one_load_and_then_hits_its_sentinel() {
    let harness = Harness::with([]).open_gate().build().await;
    for _ in 0..100 {
        assert_eq!(harness.seen(7).await.0, None);
    }
    let counts = harness.status().counts;
    assert_eq!((counts.loader.loads, counts.loader.absent), (1, 1));
    assert_eq!((counts.local.null_hits, counts.local.value_hits, counts.local.misses), (99, 0, 1));
    assert_eq!(counts.nulls_stored.local, 1);
    harness.time.advance(NULL_TTL - MS);
    assert_eq!(harness.seen(7).await, (None, Tier::Local));
    harness.time.advance(MS);
    assert_eq!(harness.seen(7).await, (None, Tier::Loader));
}

#[tokio::test]
async fn case_26_with_a_shared_cache_one_load_serves_all_processes() {
    let harness = Harness::with([]).open_gate().shared().build().await;
    assert_eq!(harness.seen(7).await, (None, Tier::Loader));
    quiet().await;
    assert_eq!(harness.status().counts.nulls_stored.shared, 1);
    let peer = harness.peer().await;
    for _ in 0..100 {
        let _ = within(peer.get(&7)).await.unwrap();
    }
    let counts = peer.status().counts;
    assert_eq!(counts.loader.loads, 0);
    assert_eq!((counts.shared.null_hits, counts.shared.misses), (1, 0));
    assert_eq!((counts.local.null_hits, counts.local.misses), (99, 1));
}

// A copy ends when its original does, not a whole lifetime later.
#[tokio::test]
async fn case_26_a_sentinel_that_is_copied_does_not_live_longer() {
    let harness = Harness::with([]).open_gate().shared().build().await;
    let _ = harness.seen(7).await;
    quiet().await;
    let peer = harness.peer().await;
    harness.time.advance(NULL_TTL - SECOND);
    assert_eq!(seen(within(peer.get(&7)).await.unwrap()), (None, Tier::Shared));
    harness.time.advance(SECOND - MS);
    assert_eq!(seen(within(peer.get(&7)).await.unwrap()), (None, Tier::Local));
    harness.time.advance(MS);
    assert_eq!(seen(within(peer.get(&7)).await.unwrap()), (None, Tier::Loader));
}

// The writer's clock has no say in it.
#[tokio::test]
async fn a_sentinel_from_a_peer_whose_clock_is_ahead_is_clipped() {
    let harness = Harness::with([]).open_gate().shared().build().await;
    let lease = crate::ports::LeaseId::fresh();
    assert_eq!(harness.take_lease(7, lease).await, Slot::LeaseGranted);
    let (slot, ahead) = (harness.slot(7), harness.clock.unix_ms() + 3_600_000);
    let memory = harness.store().memory();
    let fill = crate::shared_cache::SlotCalls::fill(
        memory,
        &slot,
        lease,
        crate::ports::Entry::Null,
        ahead,
        3_600 * SECOND,
    );
    let _ = fill.await.unwrap();
    assert_eq!(harness.seen(7).await, (None, Tier::Shared));
    harness.time.advance(NULL_TTL - MS);
    assert_eq!(harness.seen(7).await, (None, Tier::Local));
    harness.time.advance(MS);
    assert_eq!(harness.seen(7).await, (None, Tier::Shared));
}

#[tokio::test]
async fn case_24_a_row_is_found_at_once_after_its_creation_though_a_sentinel_stood() {
    for shared in [false, true] {
        let harness = Harness::with([]).open_gate().shared_if(shared).build().await;
        assert_eq!(harness.seen(7).await, (None, Tier::Loader));
        quiet().await;
        assert_eq!(harness.seen(7).await, (None, Tier::Local));
        if shared {
            assert!(matches!(harness.shared_slot(7).await, Slot::Null { .. }));
        }
        harness.write(7).await.unwrap();
        if shared {
            assert_eq!(harness.shared_slot(7).await, Slot::Empty);
            let peer = harness.peer().await;
            assert_eq!(seen(within(peer.get(&7)).await.unwrap()), (Some(1), Tier::Loader));
        }
        assert_eq!(harness.seen(7).await.0, Some(1));
    }
}

#[tokio::test]
async fn case_24_the_same_for_an_id_that_the_database_assigns() {
    for shared in [false, true] {
        let harness = Harness::with([]).open_gate().shared_if(shared).build().await;
        let next = 1_000_001;
        assert_eq!(harness.seen(next).await, (None, Tier::Loader));
        let rows = harness.table.clone();
        let created = harness.guard.create(|admit| async move {
            let mut transaction = rows.begin();
            let id = transaction.insert();
            let admitted = admit.key(id).await?;
            transaction.commit();
            Ok::<_, super::writer::Failure>((admitted, id))
        });
        assert_eq!(within(created).await.unwrap(), next);
        assert_eq!(harness.seen(next).await, (Some(1), Tier::Loader));
    }
}

#[tokio::test]
async fn case_27_no_error_is_remembered_as_absence() {
    for shared in [false, true] {
        for mishap in [Mishap::Error, Mishap::Panic, Mishap::Hang] {
            let harness = Harness::with([7]).open_gate().shared_if(shared).build().await;
            harness.mishap(7, mishap);
            let reader = harness.spawn_get(7);
            harness.pass(2 * SECOND).await;
            let failed = within(reader).await.unwrap();
            assert!(
                matches!(
                    (mishap, &failed),
                    (Mishap::Error, Err(ReadError::Load(_)))
                        | (Mishap::Panic, Err(ReadError::LoadPanicked))
                        | (Mishap::Hang, Err(ReadError::LoadTimedOut { .. }))
                ),
                "{mishap:?}: {failed:?}"
            );
            quiet().await;
            let counts = harness.status().counts;
            assert_eq!((counts.nulls_stored.local, counts.nulls_stored.shared), (0, 0));
            if shared {
                assert_eq!(harness.shared_slot(7).await, Slot::Empty, "the lease was to go back");
            }
            assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader), "{mishap:?}");
        }
    }
}

#[tokio::test]
async fn case_27_an_id_that_the_gate_knows_is_asked_for_again_after_an_error() {
    let harness = Harness::with([7]).shared().build().await;
    for _ in 0..5 {
        harness.mishap(7, Mishap::Error);
        assert!(harness.get(7).await.is_err());
        assert!(!harness.refuses(7));
    }
    quiet().await;
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
}

#[tokio::test]
async fn case_27_a_shared_row_that_cannot_be_decoded_is_loaded() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    let lease = crate::ports::LeaseId::fresh();
    assert_eq!(harness.take_lease(7, lease).await, Slot::LeaseGranted);
    let garbage = crate::ports::Entry::Value(bytes::Bytes::from_static(b"{\"id\":"));
    let slot = harness.slot(7);
    let fill = crate::shared_cache::SlotCalls::fill(
        harness.store().memory(),
        &slot,
        lease,
        garbage,
        u64::MAX,
        60 * SECOND,
    );
    let _ = fill.await.unwrap();
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    let counts = harness.status().counts.shared;
    assert_eq!((counts.undecodable, counts.misses, counts.value_hits), (1, 1, 0));
}

// Without a link nobody knows what others write, so nothing is shared.
#[tokio::test]
async fn without_a_link_nothing_is_shared() {
    let harness = Harness::with([7]).shared().build().await;
    harness.fake_backplane.lose_link();
    quiet().await;
    assert_eq!(harness.seen(500).await, (None, Tier::Loader));
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    quiet().await;
    assert_eq!(harness.shared_slot(500).await, Slot::Empty);
    assert_eq!(harness.shared_slot(7).await, Slot::Empty);
}

// Promise P3, for several instances with an open gate: warming, rebuilding, or kept open.
#[tokio::test]
async fn an_absent_id_behind_open_gates_is_loaded_once_by_all_instances() {
    for was_complete in [false, true] {
        let harness = Harness::with([7]).shared().unready();
        let (harness, end) =
            harness.build_with(|failpoints, _| failpoints.hold(At::BeforeEnd)).await;
        if was_complete {
            end.arrived().await;
            end.let_one_go();
            until("the gate is closed", || harness.refuses(1)).await;
            harness.fake_backplane.events().void(OpenReason::Resyncing);
        }
        let peer = harness.peer().await;
        assert!(!harness.refuses(500));
        assert_eq!(harness.seen(500).await, (None, Tier::Loader));
        quiet().await;
        assert_eq!(seen(peer.get(&500).await.unwrap()), (None, Tier::Shared));
        assert_eq!(harness.status().counts.nulls_stored.shared, 1);
    }
}

// Case C28, for the shared cache.
#[tokio::test]
async fn case_28_sentinels_beyond_their_budget_stay_local_and_rows_are_shared() {
    let few = |described: crate::GuardBuilder<_, _>| described.local_null_capacity(10);
    let harness = Harness::with([7]).shared().open_gate().tune(few).build().await;
    for id in 1_000..1_100 {
        assert_eq!(harness.seen(id).await, (None, Tier::Loader));
        quiet().await;
    }
    assert_eq!(harness.store().memory().len(), 5, "half of the budget in one lifetime");
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    quiet().await;
    assert!(matches!(harness.shared_slot(7).await, Slot::Value { .. }));
}

#[tokio::test]
async fn a_row_past_its_time_is_served_stale_only_while_the_database_fails() {
    let harness = Harness::with([7]).open_gate().build().await;
    let _ = harness.seen(7).await;
    harness.time.advance(super::harness::VALUE_TTL);
    harness.mishap(7, Mishap::Error);
    match harness.get(7).await.unwrap() {
        Answer::Found { stale, tier, .. } => assert!(stale && tier == Tier::Local),
        other => panic!("{other:?}"),
    }
    match harness.get(7).await.unwrap() {
        Answer::Found { stale, tier, .. } => assert!(!stale && tier == Tier::Loader),
        other => panic!("{other:?}"),
    }
    assert_eq!(harness.status().counts.stale_served, 1);
}

// Fail-safe covers errors of the database. A panic is a fault of the program, and is reported.
#[tokio::test]
async fn a_row_past_its_time_is_not_served_stale_after_a_panic() {
    let harness = Harness::with([7]).open_gate().build().await;
    let _ = harness.seen(7).await;
    harness.time.advance(super::harness::VALUE_TTL);
    harness.mishap(7, Mishap::Panic);
    let failed = harness.get(7).await;
    assert!(matches!(failed, Err(ReadError::LoadPanicked)), "{failed:?}");
    assert_eq!(harness.status().counts.stale_served, 0);
    harness.mishap(7, Mishap::Error);
    assert!(harness.get(7).await.is_ok(), "the stale row is still there for an error");
}
