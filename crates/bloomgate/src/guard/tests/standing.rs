//! An instance that may not be alone: gate open, local cache distrusted (promise P2).

use super::house::{House, MS, SECOND, WINDOW, seen};
use super::stops::At;
use super::{quiet, until, within};
use crate::answer::{Tier, Verdict, Why};
use crate::ports::{Settled, Standing};

const NOT_ALONE: Standing = Standing::Doubtful(Why::NotAlone);

#[tokio::test]
async fn company_opens_the_gate_and_only_a_new_scan_closes_it() {
    let house = House::with(1..=30).build().await;
    assert!(house.refuses(500));
    house.company.set(NOT_ALONE);
    quiet().await;
    assert_eq!(house.guard.check(&500), Verdict::Unknown(Why::NotAlone));
    // The other one writes, and tells nobody.
    house.rows.commit(500);
    let snapshot = house.stops.hold(At::AfterSnapshot);
    house.company.set(Standing::Current);
    snapshot.arrived().await;
    assert_eq!(house.guard.check(&500), Verdict::Unknown(Why::Rebuilding));
    assert!(house.guard.is_ready(), "readiness never turns back");
    snapshot.let_all_go();
    until("the gate is closed again", || house.refuses(501)).await;
    assert!(!house.refuses(500));
}

#[tokio::test]
async fn a_generation_that_was_being_built_when_company_came_is_discarded() {
    let house = House::with(1..=30).unready();
    let (house, end) = house.build_with(|stops, _| stops.hold(At::BeforeEnd)).await;
    end.arrived().await;
    house.company.set(NOT_ALONE);
    quiet().await;
    house.rows.commit(500);
    // The scan goes on to its end, if anybody is still listening.
    end.let_all_go();
    quiet().await;
    assert!(!house.guard.is_ready(), "a generation of before the doubt was put in service");
    house.company.set(Standing::Current);
    house.pass(SECOND).await;
    until("the gate is closed", || house.guard.is_ready()).await;
    assert!(!house.refuses(500));
    assert_eq!(house.source.scans(), [None, None], "begun anew, not resumed");
}

// Writes of the other one may be under way when it is gone, so the scan waits (rule A8).
#[tokio::test]
async fn after_company_the_scan_waits_for_the_others_writes() {
    let house = House::with(1..=30).build().await;
    house.source.settled(Settled::CannotTell);
    house.company.set(NOT_ALONE);
    quiet().await;
    house.company.set(Standing::Current);
    house.pass(WINDOW - MS).await;
    assert_eq!(house.source.scans().len(), 1, "scanned while writes may be under way");
    house.rows.commit(500);
    house.pass(MS).await;
    until("the gate is closed again", || house.refuses(501)).await;
    assert!(!house.refuses(500));
}

#[tokio::test]
async fn what_was_cached_before_company_came_is_not_served_any_more() {
    let house = House::with([7]).open_gate().build().await;
    assert_eq!(house.seen(7).await, (Some(1), Tier::Loader));
    assert_eq!(house.seen(8).await, (None, Tier::Loader));
    assert_eq!(house.seen(7).await, (Some(1), Tier::Local));
    assert_eq!(house.seen(8).await, (None, Tier::Local));
    house.company.set(NOT_ALONE);
    quiet().await;
    house.rows.commit(7);
    house.rows.commit(8);
    // In company, every request asks the database, and nothing is kept.
    for _ in 0..2 {
        assert_eq!(house.seen(7).await, (Some(2), Tier::Loader));
        assert_eq!(house.seen(8).await, (Some(1), Tier::Loader));
    }
    house.company.set(Standing::Current);
    quiet().await;
    assert_eq!(house.seen(7).await, (Some(2), Tier::Loader));
    assert_eq!(house.seen(7).await, (Some(2), Tier::Local));
    assert_eq!(house.seen(8).await, (Some(1), Tier::Loader));
}

// A load that began in company knows nothing of what the other one wrote after it.
#[tokio::test]
async fn a_load_under_way_when_the_standing_changes_is_not_kept() {
    for (before, after) in [(Standing::Current, NOT_ALONE), (NOT_ALONE, Standing::Current)] {
        let house = House::with([7]).open_gate().build().await;
        house.company.set(before);
        quiet().await;
        let loaded = house.stops.hold_one(At::AfterLoad);
        let reader = house.spawn_get(7);
        loaded.arrived().await;
        house.rows.commit(7);
        house.company.set(after);
        quiet().await;
        house.company.set(Standing::Current);
        quiet().await;
        loaded.let_all_go();
        assert_eq!(seen(within(reader).await.unwrap().unwrap()).0, Some(1));
        assert_eq!(house.seen(7).await, (Some(2), Tier::Loader), "{before:?} to {after:?}");
    }
}

// A standing that was lost and won again between two looks was lost all the same.
#[tokio::test]
async fn a_break_that_is_over_before_anybody_looks_is_a_break() {
    let house = House::with([7]).build().await;
    house.source.settled(Settled::CannotTell);
    let _ = house.seen(7).await;
    house.company.set(NOT_ALONE);
    house.rows.commit(7);
    house.rows.commit(500);
    house.company.set(Standing::Current);
    quiet().await;
    assert!(!house.refuses(500), "refused under a certificate of before the break");
    assert_eq!(house.seen(7).await, (Some(2), Tier::Loader));
    house.pass(6 * SECOND).await;
    // What the other one had under way at the break.
    house.rows.commit(501);
    house.pass(WINDOW).await;
    until("the gate is closed again", || house.refuses(502)).await;
    assert!(!house.refuses(500) && !house.refuses(501));
}

#[tokio::test]
async fn stale_rows_are_not_served_in_company() {
    let house = House::with([7]).open_gate().build().await;
    let _ = house.seen(7).await;
    house.time.advance(super::house::VALUE_TTL);
    house.company.set(NOT_ALONE);
    quiet().await;
    house.mishap(7, super::house::Mishap::Error);
    assert!(house.get(7).await.is_err());
}
