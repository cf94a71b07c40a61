//! Writes of unknown outcome: open until W, and then over (rules A5, A6).

use super::failpoints::At;
use super::harness::{Harness, MS, RUN_FOR, SECOND, WINDOW, seen};
use super::store::Faults;
use super::writer::{Failure, Writer};
use super::{quiet, within};
use crate::answer::Tier;
use crate::error::WriteError;
use crate::ports::Slot;

#[derive(Clone, Copy, Debug)]
enum Lost {
    /// `run` takes too long and is dropped.
    TimedOut,
    Panicked,
    /// `run` says that it doesn't know.
    Unsettled,
}

/// The key is open until W, to the millisecond; a row that appears meanwhile is found at once.
async fn is_open_until_w(shared: bool, lost: Lost) {
    let harness = Harness::with([7]).open_gate().shared_if(shared).build().await;
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    quiet().await;
    let writer = Writer::begin(&harness, 7).await;
    let left = match lost {
        Lost::TimedOut => {
            harness.pass(RUN_FOR - MS).await;
            assert!(!writer.is_over(), "cut off before its time");
            harness.pass(MS).await;
            let result = within(writer.result()).await;
            assert!(
                matches!(result, Err(WriteError::TimedOut { after }) if after == RUN_FOR),
                "{result:?}"
            );
            assert!(result.unwrap_err().is_temporary());
            WINDOW - RUN_FOR
        }
        Lost::Panicked => {
            writer.panic().await;
            WINDOW
        }
        Lost::Unsettled => {
            writer.lose().await;
            WINDOW
        }
    };
    assert_eq!(harness.status().counts.writes_unknown, 1);
    assert_eq!(harness.open_writes(), 1);
    // Neither cache is read, and nothing is published.
    for _ in 0..3 {
        assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader), "{lost:?}, shared: {shared}");
    }
    if shared {
        assert_eq!(harness.shared_slot(7).await, Slot::WriteIntent);
    }
    harness.pass(left - MS).await;
    // The COMMIT whose answer was lost, at the last moment.
    harness.table.commit(7);
    for _ in 0..3 {
        assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader), "{lost:?}, shared: {shared}");
    }
    // A load that was under way at W knows nothing of what came before it.
    let loaded = harness.failpoints.hold_one(At::AfterLoad);
    let late = harness.spawn_get(7);
    loaded.arrived().await;
    harness.pass(MS).await;
    assert_eq!(harness.open_writes(), 0, "{lost:?}: W is over");
    loaded.let_all_go();
    let _ = within(late).await.unwrap().unwrap();
    if shared {
        assert_eq!(harness.shared_slot(7).await, Slot::Empty, "the write intent was to go at W");
    }
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader), "{lost:?}, shared: {shared}");
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Local), "{lost:?}, shared: {shared}");
    quiet().await;
    if shared {
        let peer = harness.peer().await;
        assert_eq!(seen(within(peer.get(&7)).await.unwrap()), (Some(2), Tier::Shared));
    }
    harness.is_tidy().await;
}

#[tokio::test]
async fn a_write_that_is_cut_off_stays_open_until_w() {
    is_open_until_w(false, Lost::TimedOut).await;
    is_open_until_w(true, Lost::TimedOut).await;
}

#[tokio::test]
async fn case_32_a_write_that_panics_stays_open_until_w() {
    is_open_until_w(false, Lost::Panicked).await;
    is_open_until_w(true, Lost::Panicked).await;
}

#[tokio::test]
async fn a_write_that_was_lost_at_commit_stays_open_until_w() {
    is_open_until_w(false, Lost::Unsettled).await;
    is_open_until_w(true, Lost::Unsettled).await;
}

#[tokio::test]
async fn an_error_that_the_database_answered_with_ends_the_write_at_once() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    Writer::begin(&harness, 7).await.fail().await;
    assert_eq!(harness.open_writes(), 0);
    assert_eq!(harness.status().counts.writes_ended, 1);
    assert_eq!(harness.shared_slot(7).await, Slot::Empty);
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Local));
}

// C55, rollback: what was never committed is not cached either.
#[tokio::test]
async fn case_55_a_write_that_is_rolled_back_leaves_no_row() {
    let harness = Harness::with([]).shared().build().await;
    let rows = harness.table.clone();
    let run = async move {
        let mut transaction = rows.begin();
        transaction.put(7);
        Err::<(), _>(Failure::OutcomeKnown)
    };
    assert!(harness.guard.write(7, run).await.is_err());
    assert_eq!(harness.seen(7).await, (None, Tier::Loader), "a stray positive is harmless");
    assert_eq!(harness.seen(7).await, (None, Tier::Local));
}

fn store_failures() -> [Faults; 2] {
    [
        Faults { down: true, ..Faults::default() },
        Faults { no_clear_intent: true, ..Faults::default() },
    ]
}

// Rule A5: the outcome is known, so the caller has its answer; what stands at the server isn't, so
// End is repeated until it is confirmed.
#[tokio::test]
async fn an_end_that_the_shared_cache_does_not_confirm_is_repeated_with_the_key_open() {
    for faults in store_failures() {
        let harness = Harness::with([7]).open_gate().shared().build().await;
        let mut writer = Writer::begin(&harness, 7).await;
        writer.commit().await;
        harness.store().faults(faults);
        writer.end().await;
        assert_eq!(harness.status().counts.writes_ended, 1);
        assert_eq!(harness.status().counts.writes_unknown, 0);
        harness.pass(10 * SECOND).await;
        assert_eq!(harness.open_writes(), 1);
        for _ in 0..2 {
            assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
        }
        harness.store().faults(Faults::default());
        for _ in 0..4 {
            harness.pass(250 * MS).await;
        }
        assert_eq!(harness.open_writes(), 0, "not confirmed after the outage");
        assert_eq!(harness.shared_slot(7).await, Slot::Empty);
        assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
        assert_eq!(harness.seen(7).await, (Some(2), Tier::Local));
        // The shared cache is used again.
        harness.guard.0.local.invalidate_all();
        assert_eq!(harness.seen(7).await, (Some(2), Tier::Shared));
    }
}

// Rule A5: what another instance cached while the End was lost is not read here, after W either.
#[tokio::test]
async fn an_end_that_is_never_confirmed_keeps_the_key_from_the_shared_cache() {
    for faults in store_failures() {
        let harness = Harness::with([7]).open_gate().shared().build().await;
        let mut writer = Writer::begin(&harness, 7).await;
        writer.commit().await;
        harness.store().faults(faults);
        writer.end().await;
        for _ in 0..121 {
            harness.pass(250 * MS).await;
        }
        assert_eq!(harness.open_writes(), 0, "W has passed");
        harness.store().faults(Faults::default());
        // The write intent has expired, and another instance caches what is outdated now.
        harness.pass(2 * SECOND).await;
        let peer = harness.peer().await;
        quiet().await;
        assert_eq!(seen(within(peer.get(&7)).await.unwrap()), (Some(2), Tier::Loader));
        harness.table.commit(7);
        assert_eq!(harness.seen(7).await, (Some(3), Tier::Loader));
    }
}

// Rule A5 for the backplane's part of End.
#[tokio::test]
async fn an_end_that_the_backplane_does_not_confirm_is_repeated_with_the_key_closed_here() {
    let harness = Harness::with([7]).build().await;
    harness.fake_backplane.fail_ends(3);
    let mut writer = Writer::begin(&harness, 7).await;
    writer.commit().await;
    writer.end().await;
    assert_eq!((harness.open_writes(), harness.fake_backplane.ends()), (0, 1));
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Local));
    for _ in 0..10 {
        harness.pass(250 * MS).await;
    }
    assert_eq!(harness.fake_backplane.ends(), 4, "three that failed, and the one that did not");
}

#[tokio::test]
async fn an_end_that_is_not_answered_costs_the_caller_one_budget() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    let mut writer = Writer::begin(&harness, 7).await;
    writer.commit().await;
    harness.store().faults(Faults { silent: true, ..Faults::default() });
    writer.finish(Ok(()));
    harness.pass(99 * MS).await;
    assert!(!writer.is_over());
    harness.pass(MS).await;
    within(writer.result()).await.unwrap();
    assert_eq!(harness.open_writes(), 1);
}

// Rule A5, the order: while the write intent's removal is on its way, the key is open here.
#[tokio::test]
async fn the_bypass_ends_after_the_intent() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    let without_intent = harness.failpoints.hold(At::AfterClearIntent);
    let mut writer = Writer::begin(&harness, 7).await;
    writer.commit().await;
    writer.finish(Ok(()));
    without_intent.arrived().await;
    assert_eq!(harness.open_writes(), 1);
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
    without_intent.let_all_go();
    within(writer.result()).await.unwrap();
    assert_eq!(harness.open_writes(), 0);
}

// Two writes of unknown outcome of one key, begun apart: the key is open until the later one's W.
#[tokio::test]
async fn each_lost_write_has_its_own_window() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    Writer::begin(&harness, 7).await.lose().await;
    harness.pass(WINDOW / 2).await;
    Writer::begin(&harness, 7).await.lose().await;
    harness.pass(WINDOW / 2).await;
    assert_eq!(harness.open_writes(), 1);
    assert_eq!(
        harness.shared_slot(7).await,
        Slot::WriteIntent,
        "the first one's end took the other's write intent"
    );
    harness.table.commit(7);
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
    harness.pass(WINDOW / 2).await;
    assert_eq!(harness.open_writes(), 0);
    harness.is_tidy().await;
}

// W counts from before Begin's first step, waits included.
#[tokio::test]
async fn the_window_counts_from_the_call() {
    let harness = Harness::with([7]).build().await;
    let announcing = harness.failpoints.hold(At::BeginOnBackplane);
    let mut writer = Writer::call(&harness, 7);
    announcing.arrived().await;
    harness.pass(RUN_FOR / 2).await;
    announcing.let_all_go();
    writer.running().await;
    harness.pass(RUN_FOR / 2).await;
    let result = within(writer.result()).await;
    assert!(matches!(result, Err(WriteError::TimedOut { .. })), "{result:?}");
    harness.pass(WINDOW - RUN_FOR).await;
    assert_eq!(harness.open_writes(), 0);
}
