//! Begin: what must be in place before `run` starts, and what happens if it can't be (rules A1,
//! B10).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::house::{House, MS, SECOND, VALUE_TTL, seen};
use super::stops::At;
use super::store::Faults;
use super::writer::{Failure, Writer};
use super::{quiet, within};
use crate::answer::Tier;
use crate::error::{AdmitError, StoreFault, WriteError};
use crate::guard::OnUnmarked;
use crate::ports::Slot;

const NO_MARKS: Faults = Faults {
    down: false,
    silent: false,
    no_marks: true,
    no_unmarks: false,
    no_fills: false,
    unsupported: false,
};

// Rule B10.
#[tokio::test]
async fn a_write_whose_mark_is_refused_fails_before_it_starts() {
    for faults in [NO_MARKS, Faults { down: true, ..Faults::default() }] {
        let house = House::with([7]).shared().build().await;
        assert_eq!(house.seen(7).await, (Some(1), Tier::Loader));
        house.store().faults(faults);
        let run = async { panic!("run was started") };
        let refused: Result<(), WriteError<Failure>> = house.guard.write(7, run).await;
        assert!(
            matches!(refused, Err(WriteError::Begin(AdmitError::Marking(_)))),
            "{faults:?}: {refused:?}"
        );
        assert!(refused.unwrap_err().is_temporary());
        assert_eq!(house.status().counts.writes_refused, 1);
        assert_eq!(house.open_writes(), 0, "nothing is under way");
        assert_eq!(house.status().counts.writes_unknown, 0);
        house.store().faults(Faults::default());
        house.pass(SECOND).await;
        house.write(7).await.unwrap();
        assert_eq!(house.seen(7).await.0, Some(2));
        house.is_tidy().await;
    }
}

#[tokio::test]
async fn run_starts_only_once_the_mark_stands() {
    let house = House::with([7]).shared().build().await;
    let marked = house.stops.hold(At::AfterMark);
    let mut writer = Writer::call(&house, 7);
    marked.arrived().await;
    quiet().await;
    assert!(!writer.is_running(), "run started before Begin was over");
    assert_eq!(house.stands(7).await, Slot::Writing);
    marked.let_all_go();
    writer.running().await;
    writer.commit().await;
    writer.end().await;
}

// Rule A1: the key is in the open set, the gate and out of the caches before anybody is asked.
#[tokio::test]
async fn the_local_part_of_begin_comes_first() {
    let house = House::with(1..=30).shared().build().await;
    let announcing = house.stops.hold(At::Announcing);
    let marking = house.stops.hold(At::BeforeMark);
    let mut writer = Writer::call(&house, 500);
    announcing.arrived().await;
    assert_eq!(house.open_writes(), 1);
    assert!(!house.refuses(500));
    assert_eq!(marking.count(), 0, "the mark goes out after the announcement");
    announcing.let_all_go();
    marking.arrived().await;
    assert!(!writer.is_running());
    marking.let_all_go();
    writer.running().await;
    writer.end().await;
}

// A mark whose answer was lost may stand; it is taken away behind the caller's back.
#[tokio::test]
async fn a_mark_that_was_not_confirmed_is_called_off() {
    let house = House::with([7]).shared().build().await;
    let marked = house.stops.hold(At::AfterMark);
    let writer = Writer::call(&house, 7);
    marked.arrived().await;
    house.pass(100 * MS).await;
    match within(writer.result()).await {
        Err(WriteError::Begin(AdmitError::Marking(error))) => {
            assert_eq!(error.fault(), StoreFault::TimedOut);
        }
        other => panic!("{other:?}"),
    }
    quiet().await;
    assert_eq!(house.stands(7).await, Slot::Vacant);
    assert_eq!(house.open_writes(), 0);
}

#[tokio::test]
async fn a_write_that_cannot_be_announced_fails_before_it_starts() {
    let house = House::with([7]).shared().build().await;
    house.company.refuse(true);
    let refused = house.write(7).await;
    assert!(matches!(refused, Err(WriteError::Begin(AdmitError::Announcing(_)))), "{refused:?}");
    assert_eq!(house.rows.version(7), 1);
    assert_eq!(house.stands(7).await, Slot::Vacant, "the mark goes out after the announcement");
    house.company.refuse(false);
    house.write(7).await.unwrap();
}

#[tokio::test]
async fn a_write_whose_announcement_takes_all_its_time_fails_before_it_starts() {
    let house = House::with([7]).build().await;
    let _announcing = house.stops.hold(At::Announcing);
    let writer = Writer::call(&house, 7);
    house.pass(super::house::RUN_FOR).await;
    let refused = within(writer.result()).await;
    assert!(matches!(refused, Err(WriteError::Begin(AdmitError::Closed))), "{refused:?}");
    assert_eq!(house.open_writes(), 0);
}

// What the old entry said is not served by this process until it must have expired, though it
// stands all the time.
#[tokio::test]
async fn under_accept_bound_an_unmarked_key_is_not_read_from_the_shared_cache_for_a_while() {
    let accept = |described: crate::Builder<_, _>| described.on_unmarked(OnUnmarked::AcceptBound);
    let house = House::with([7, 8]).open_gate().shared().tune(accept).build().await;
    let _ = within(house.neighbour().await.get(&7)).await.unwrap();
    quiet().await;
    house.store().faults(NO_MARKS);
    let mut writer = Writer::begin(&house, 7).await;
    assert_eq!(house.status().counts.writes_unmarked, 1);
    house.store().faults(Faults { no_unmarks: true, ..Faults::default() });
    writer.commit().await;
    writer.end().await;
    house.pass(super::house::WINDOW).await;
    assert!(matches!(house.stands(7).await, Slot::Value { .. }), "the old row still stands");
    assert_eq!(house.seen(7).await, (Some(2), Tier::Loader));
    // Also when the local cache has forgotten it again.
    house.company.set(crate::ports::Standing::Doubtful(crate::Why::NotAlone));
    quiet().await;
    house.company.set(crate::ports::Standing::Current);
    quiet().await;
    assert_eq!(house.seen(7).await, (Some(2), Tier::Loader));
    // Other keys are shared as ever.
    let _ = within(house.neighbour().await.get(&8)).await.unwrap();
    quiet().await;
    assert_eq!(house.seen(8).await, (Some(1), Tier::Shared));

    house.pass(VALUE_TTL + 60 * SECOND).await;
    assert_eq!(house.stands(7).await, Slot::Vacant, "the old entry has expired");
    let _ = within(house.neighbour().await.get(&7)).await.unwrap();
    quiet().await;
    assert_eq!(house.seen(7).await, (Some(2), Tier::Shared), "the key is shared again");
}

#[tokio::test]
async fn under_accept_bound_a_write_goes_on_while_the_shared_cache_is_down() {
    let accept = |described: crate::Builder<_, _>| described.on_unmarked(OnUnmarked::AcceptBound);
    let house = House::with([]).shared().tune(accept).build().await;
    assert!(house.refuses(7));
    house.store().faults(Faults { down: true, ..Faults::default() });
    house.company.refuse(true);
    house.write(7).await.unwrap();
    assert_eq!(house.status().counts.writes_unmarked, 2, "once unannounced, once unmarked");
    assert_eq!(house.seen(7).await.0, Some(1));
    house.is_tidy().await;
}

// Rule B9: a mark outlives the window by a margin, and then goes by itself.
#[tokio::test]
async fn a_mark_outlives_the_window_and_then_goes() {
    let house = House::with([7]).shared().build().await;
    Writer::begin(&house, 7).await.lose().await;
    house.store().faults(Faults { no_unmarks: true, ..Faults::default() });
    house.pass(super::house::WINDOW).await;
    assert_eq!(house.open_writes(), 0);
    assert_eq!(house.stands(7).await, Slot::Writing);
    house.pass(SECOND).await;
    assert_eq!(house.stands(7).await, Slot::Vacant);
}

#[tokio::test]
async fn the_answer_after_a_write_comes_from_the_database_then_from_the_caches() {
    let house = House::with([]).shared().build().await;
    assert_eq!(house.seen(7).await, (None, Tier::Gate));
    house.write(7).await.unwrap();
    assert_eq!(house.seen(7).await, (Some(1), Tier::Loader));
    assert_eq!(house.seen(7).await, (Some(1), Tier::Local));
    quiet().await;
    let neighbour = house.neighbour().await;
    assert_eq!(seen(within(neighbour.get(&7)).await.unwrap()), (Some(1), Tier::Shared));
}

#[tokio::test]
async fn a_create_opens_no_transaction_before_writes_may_begin() {
    let house = House::with([]).build().await;
    let joining = house.stops.hold(At::Joining);
    let transaction = Arc::new(AtomicBool::new(false));
    let (guard, opened) = (house.guard.clone(), Arc::clone(&transaction));
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
