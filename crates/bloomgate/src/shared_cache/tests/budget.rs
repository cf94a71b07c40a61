//! The cost of an outage, on a manual clock.

use std::time::Duration;

use futures_util::FutureExt as _;

use super::faulty_store::{BUDGET, Behaviour, Bench, CLEAR_STEP};
use crate::error::StoreErrorKind;
use crate::ports::{Entry, LeaseId, Slot, WriteId};

#[tokio::test]
async fn case_20_a_silent_store_costs_one_budget_a_call_until_the_breaker_opens() {
    let bench = Bench::new(Behaviour::Silent);
    for _ in 0..3 {
        let mut reading = Box::pin(bench.shared.get(&bench.slot));
        assert!((&mut reading).now_or_never().is_none());
        bench.time.advance(BUDGET - Duration::from_millis(1));
        assert!((&mut reading).now_or_never().is_none());
        bench.time.advance(Duration::from_millis(1));
        let error = reading.await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::TimedOut);
    }
    assert_eq!(bench.calls(), 3);
    for _ in 0..100 {
        assert_eq!(bench.read_error().await, Some(StoreErrorKind::Unreachable));
    }
    assert_eq!(bench.calls(), 3, "an open breaker makes no call");
    assert_eq!(bench.counts.errors.get(), 103);
    assert!(bench.shared.last_error().is_some());

    bench.set(Behaviour::Healthy);
    bench.time.advance(Duration::from_millis(250));
    assert_eq!(bench.read_error().await, None);
    assert_eq!(bench.read_error().await, None);
    assert_eq!(bench.shared.last_error(), None);
}

#[tokio::test]
async fn one_budget_covers_the_preparation_too() {
    let bench = Bench::new(Behaviour::Silent);
    let mut reading = Box::pin(bench.shared.get(&bench.slot));
    assert!((&mut reading).now_or_never().is_none());
    bench.time.advance(BUDGET);
    assert_eq!(reading.await.unwrap_err().kind(), StoreErrorKind::TimedOut);
    assert_eq!(bench.prepared(), 1);
}

#[tokio::test]
async fn the_server_is_prepared_once_and_again_after_an_outage() {
    let bench = Bench::new(Behaviour::Healthy);
    for _ in 0..3 {
        assert_eq!(bench.read_error().await, None);
    }
    assert_eq!(bench.prepared(), 1);
    bench.set(Behaviour::Fails(StoreErrorKind::Rejected));
    assert_eq!(bench.read_error().await, Some(StoreErrorKind::Rejected));
    bench.set(Behaviour::Healthy);
    assert_eq!(bench.read_error().await, None);
    assert_eq!(bench.prepared(), 1, "a rejection is an answer");
    bench.set(Behaviour::Fails(StoreErrorKind::Unreachable));
    assert_eq!(bench.read_error().await, Some(StoreErrorKind::Unreachable));
    bench.set(Behaviour::Healthy);
    for _ in 0..3 {
        assert_eq!(bench.read_error().await, None);
    }
    assert_eq!(bench.prepared(), 2, "another server may answer now");
}

#[tokio::test]
async fn an_unsupported_store_is_not_called_for_every_request() {
    let bench = Bench::new(Behaviour::Fails(StoreErrorKind::Unsupported));
    for _ in 0..100 {
        assert!(bench.read_error().await.is_some());
    }
    assert_eq!(bench.calls(), 3);
}

#[tokio::test]
async fn rejections_and_invalid_responses_keep_the_breaker_closed() {
    for kind in [StoreErrorKind::Rejected, StoreErrorKind::InvalidResponse] {
        let bench = Bench::new(Behaviour::Healthy);
        assert_eq!(bench.read_error().await, None);
        bench.set(Behaviour::Fails(kind));
        for _ in 0..100 {
            assert_eq!(bench.read_error().await, Some(kind));
        }
        bench.set(Behaviour::Healthy);
        assert_eq!(bench.read_error().await, None);
        assert_eq!(bench.shared.last_error(), None);
    }
}

#[tokio::test]
async fn every_operation_has_the_budget_and_the_breaker() {
    let bench = Bench::new(Behaviour::Healthy);
    bench.shared.prepare().await.unwrap();
    bench.set(Behaviour::Silent);
    let (shared, slot, lease, write) =
        (&bench.shared, &bench.slot, LeaseId::fresh(), WriteId::fresh());
    let long = Duration::from_secs(60);
    macro_rules! gives_up {
        ($($operation:expr),* $(,)?) => {$(
            bench.time.advance(Duration::from_secs(1));
            let mut operation = Box::pin($operation);
            assert!((&mut operation).now_or_never().is_none());
            bench.time.advance(BUDGET);
            assert_eq!(operation.await.unwrap_err().kind(), StoreErrorKind::TimedOut);
        )*};
    }
    gives_up!(
        shared.get(slot),
        shared.get_or_lease(slot, lease, long),
        shared.fill(slot, lease, Entry::Null, 7, long),
        shared.release(slot, lease),
        shared.put_intent(slot, write, long),
        shared.clear_intent(slot, write),
    );
    assert!(shared.clear_intent(slot, write).await.is_err());
    assert_eq!(bench.calls(), 7);
}

#[tokio::test]
async fn each_step_of_a_clearing_has_a_budget_of_its_own() {
    let bench = Bench::new(Behaviour::Healthy);
    let lease = LeaseId::fresh();
    let leased = bench.shared.get_or_lease(&bench.slot, lease, Duration::from_secs(60)).await;
    assert_eq!(leased.unwrap(), Slot::LeaseGranted);
    let mut clearing = Box::pin(bench.shared.clear(bench.slot.prefix(), BUDGET));
    for _ in 0..18 {
        assert!((&mut clearing).now_or_never().is_none());
        bench.time.advance(CLEAR_STEP / 6);
    }
    assert_eq!(clearing.await.unwrap(), 1);
    assert_eq!(bench.shared.get(&bench.slot).await.unwrap(), Slot::Empty);

    let mut clearing = Box::pin(bench.shared.clear(bench.slot.prefix(), CLEAR_STEP / 2));
    assert!((&mut clearing).now_or_never().is_none());
    bench.time.advance(CLEAR_STEP / 2);
    assert_eq!(clearing.await.unwrap_err().kind(), StoreErrorKind::TimedOut);
}
