//! Begin: what must be in place before `run` starts, and what happens if it can't be (rules A1,
//! B10).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::failpoints::At;
use super::harness::{Harness, MS, SECOND, VALUE_TTL, WINDOW, seen};
use super::store::Faults;
use super::writer::{Failure, Writer};
use super::{quiet, within};
use crate::answer::Tier;
use crate::error::{AdmitError, StoreErrorKind, WriteError};
use crate::guard::OnStoreFailure;
use crate::ports::Slot;
use crate::shared_cache::SlotCalls as _;

const NO_PUT_INTENT: Faults = Faults {
    down: false,
    silent: false,
    no_put_intent: true,
    no_clear_intent: false,
    no_fill: false,
    unsupported: false,
};

// Rule B10.
#[tokio::test]
async fn a_write_whose_intent_is_refused_fails_before_it_starts() {
    for faults in [NO_PUT_INTENT, Faults { down: true, ..Faults::default() }] {
        let harness = Harness::with([7]).shared().build().await;
        assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
        harness.store().faults(faults);
        let run = async { panic!("run was started") };
        let refused: Result<(), WriteError<Failure>> = harness.guard.write(7, run).await;
        assert!(
            matches!(refused, Err(WriteError::Begin(AdmitError::Store(_)))),
            "{faults:?}: {refused:?}"
        );
        assert!(refused.unwrap_err().is_temporary());
        assert_eq!(harness.status().counts.writes_refused, 1);
        assert_eq!(harness.open_writes(), 0, "nothing is under way");
        assert_eq!(harness.status().counts.writes_unknown, 0);
        harness.store().faults(Faults::default());
        harness.pass(SECOND).await;
        harness.write(7).await.unwrap();
        assert_eq!(harness.seen(7).await.0, Some(2));
        harness.is_tidy().await;
    }
}

#[tokio::test]
async fn run_starts_only_once_the_intent_stands() {
    let harness = Harness::with([7]).shared().build().await;
    let with_intent = harness.failpoints.hold(At::AfterPutIntent);
    let mut writer = Writer::call(&harness, 7);
    with_intent.arrived().await;
    quiet().await;
    assert!(!writer.is_running(), "run started before Begin was over");
    assert_eq!(harness.shared_slot(7).await, Slot::WriteIntent);
    with_intent.let_all_go();
    writer.running().await;
    writer.commit().await;
    writer.end().await;
}

// Rule A1: the key is in the open set, the gate and out of the caches before any other party is asked.
#[tokio::test]
async fn the_local_part_of_begin_comes_first() {
    let harness = Harness::with(1..=30).shared().build().await;
    let announcing = harness.failpoints.hold(At::BeginOnBackplane);
    let marking = harness.failpoints.hold(At::BeforePutIntent);
    let mut writer = Writer::call(&harness, 500);
    announcing.arrived().await;
    assert_eq!(harness.open_writes(), 1);
    assert!(!harness.refuses(500));
    assert_eq!(marking.count(), 0, "the write intent goes out after the announcement");
    announcing.let_all_go();
    marking.arrived().await;
    assert!(!writer.is_running());
    marking.let_all_go();
    writer.running().await;
    writer.end().await;
}

// A write intent whose answer was lost may stand; it is taken away behind the caller's back.
#[tokio::test]
async fn an_intent_that_was_not_confirmed_is_removed() {
    let harness = Harness::with([7]).shared().build().await;
    let with_intent = harness.failpoints.hold(At::AfterPutIntent);
    let writer = Writer::call(&harness, 7);
    with_intent.arrived().await;
    harness.pass(100 * MS).await;
    match within(writer.result()).await {
        Err(WriteError::Begin(AdmitError::Store(error))) => {
            assert_eq!(error.kind(), StoreErrorKind::TimedOut);
        }
        other => panic!("{other:?}"),
    }
    quiet().await;
    assert_eq!(harness.shared_slot(7).await, Slot::Empty);
    assert_eq!(harness.open_writes(), 0);
}

#[tokio::test]
async fn a_write_that_cannot_be_announced_fails_before_it_starts() {
    let harness = Harness::with([7]).shared().build().await;
    harness.fake_backplane.refuse(true);
    let refused = harness.write(7).await;
    assert!(matches!(refused, Err(WriteError::Begin(AdmitError::Backplane(_)))), "{refused:?}");
    assert_eq!(harness.table.version(7), 1);
    assert_eq!(
        harness.shared_slot(7).await,
        Slot::Empty,
        "the write intent goes out after the announcement"
    );
    harness.fake_backplane.refuse(false);
    harness.write(7).await.unwrap();
}

#[tokio::test]
async fn a_write_whose_announcement_takes_all_its_time_fails_before_it_starts() {
    let harness = Harness::with([7]).build().await;
    let _announcing = harness.failpoints.hold(At::BeginOnBackplane);
    let writer = Writer::call(&harness, 7);
    harness.pass(super::harness::RUN_FOR).await;
    let refused = within(writer.result()).await;
    assert!(matches!(refused, Err(WriteError::Begin(AdmitError::Closed))), "{refused:?}");
    assert_eq!(harness.open_writes(), 0);
}

// What the old entry said is not served by this process until it must have expired, though it
// stands all the time.
#[tokio::test]
async fn under_allow_stale_a_key_without_intent_is_not_read_from_the_shared_cache_for_a_while() {
    let accept = |described: crate::GuardBuilder<_, _>| {
        described.on_store_failure(OnStoreFailure::AllowStale)
    };
    let harness = Harness::with([7, 8]).open_gate().shared().tune(accept).build().await;
    let _ = within(harness.peer().await.get(&7)).await.unwrap();
    quiet().await;
    harness.store().faults(NO_PUT_INTENT);
    let mut writer = Writer::begin(&harness, 7).await;
    assert_eq!(harness.status().counts.writes_without_intent, 1);
    harness.store().faults(Faults { no_clear_intent: true, ..Faults::default() });
    writer.commit().await;
    writer.end().await;
    harness.pass(WINDOW).await;
    assert!(matches!(harness.shared_slot(7).await, Slot::Value { .. }), "the old row still stands");
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
    // Also when the local cache has forgotten it again.
    harness.fake_backplane.lose_link();
    quiet().await;
    harness.fake_backplane.resync_link();
    quiet().await;
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
    // Other keys are shared as ever.
    let _ = within(harness.peer().await.get(&8)).await.unwrap();
    quiet().await;
    assert_eq!(harness.seen(8).await, (Some(1), Tier::Shared));

    harness.pass(VALUE_TTL + 60 * SECOND).await;
    assert_eq!(harness.shared_slot(7).await, Slot::Empty, "the old entry has expired");
    let _ = within(harness.peer().await.get(&7)).await.unwrap();
    quiet().await;
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Shared), "the key is shared again");
}

#[tokio::test]
async fn under_allow_stale_a_write_goes_on_while_the_shared_cache_is_down() {
    let accept = |described: crate::GuardBuilder<_, _>| {
        described.on_store_failure(OnStoreFailure::AllowStale)
    };
    let harness = Harness::with([]).shared().tune(accept).build().await;
    assert!(harness.refuses(7));
    harness.store().faults(Faults { down: true, ..Faults::default() });
    harness.fake_backplane.refuse(true);
    harness.write(7).await.unwrap();
    assert_eq!(harness.status().counts.writes_without_intent, 1);
    assert_eq!(harness.seen(7).await.0, Some(1));
    harness.is_tidy().await;
}

// Rule B14.
#[tokio::test]
async fn under_allow_stale_an_outage_stops_no_write_however_many_there_are() {
    let accept = |described: crate::GuardBuilder<_, _>| {
        described.on_store_failure(OnStoreFailure::AllowStale)
    };
    let harness = Harness::with([]).shared().tune(accept).build().await;
    harness.store().faults(Faults { down: true, ..Faults::default() });
    // More than may be open at a time.
    for id in 0..10_100 {
        harness.write(id).await.unwrap();
    }
    assert_eq!(harness.open_writes(), 0);
    assert_eq!(harness.status().counts.writes_without_intent, 10_100);
    assert_eq!(harness.seen(10_099).await.0, Some(1));
}

// Rule C26: the log may be another one already for the others, and with it the epoch of their slots,
// while this instance has not gone on to it.
#[tokio::test]
async fn an_intent_stands_in_the_slots_of_the_log_in_which_its_write_has_begun() {
    let harness = Harness::with([7]).shared().build().await;
    let slots = &harness.guard.0.slots;
    let others = slots.in_epoch("another", &crate::key::KeyBytes::of(&7_i64));
    assert_ne!(others, harness.slot(7));
    let memory = harness.store().memory().clone();
    let lease = crate::ports::LeaseId::fresh();
    assert_eq!(memory.get_or_lease(&others, lease, SECOND).await.unwrap(), Slot::LeaseGranted);
    let old = crate::ports::Entry::Value("old".into());
    let _ = memory.fill(&others, lease, old, u64::MAX, WINDOW).await.unwrap();
    harness.fake_backplane.write_in("another");
    let mut writer = Writer::begin(&harness, 7).await;
    assert_eq!(memory.get(&others).await.unwrap(), Slot::WriteIntent);
    writer.commit().await;
    writer.end().await;
    assert_eq!(memory.get(&others).await.unwrap(), Slot::Empty);
    assert_eq!(harness.shared_slot(7).await, Slot::Empty);
}

// Rule B9: a write intent outlives the window by a margin, and then goes by itself.
#[tokio::test]
async fn an_intent_outlives_the_window_and_then_expires() {
    let harness = Harness::with([7]).shared().build().await;
    Writer::begin(&harness, 7).await.lose().await;
    harness.store().faults(Faults { no_clear_intent: true, ..Faults::default() });
    harness.pass(WINDOW).await;
    assert_eq!(harness.open_writes(), 0);
    assert_eq!(harness.shared_slot(7).await, Slot::WriteIntent);
    harness.pass(SECOND).await;
    assert_eq!(harness.shared_slot(7).await, Slot::Empty);
}

#[tokio::test]
async fn the_answer_after_a_write_comes_from_the_database_then_from_the_caches() {
    let harness = Harness::with([]).shared().build().await;
    assert_eq!(harness.seen(7).await, (None, Tier::Gate));
    harness.write(7).await.unwrap();
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Local));
    quiet().await;
    let peer = harness.peer().await;
    assert_eq!(seen(within(peer.get(&7)).await.unwrap()), (Some(1), Tier::Shared));
}

#[tokio::test]
async fn a_create_opens_no_transaction_before_writes_may_begin() {
    let harness = Harness::with([]).build().await;
    let joining = harness.failpoints.hold(At::ReadyForWrites);
    let transaction = Arc::new(AtomicBool::new(false));
    let (guard, opened) = (harness.guard.clone(), Arc::clone(&transaction));
    let creating = tokio::spawn(async move {
        let run = |admit: crate::Admit<i64>| async move {
            opened.store(true, Ordering::SeqCst);
            Ok::<_, Failure>((admit.key(7).await?, ()))
        };
        guard.create(run).await
    });
    joining.arrived().await;
    quiet().await;
    assert!(!transaction.load(Ordering::SeqCst));
    joining.let_all_go();
    within(creating).await.unwrap().unwrap();
    assert!(transaction.load(Ordering::SeqCst));
}
