//! Rule C30: what a guard finds that is declared to be the only instance.

use super::super::live_member;
use super::harness::{Harness, LEASE, SOON};

/// The outcome of the check, while time passes.
async fn check(harness: &Harness) -> Result<Option<String>, String> {
    let (log, clock) = (harness.log.clone(), harness.clock.clone());
    let check = tokio::spawn(async move { live_member(&log, SOON, &clock).await });
    harness.pass(LEASE * 2).await;
    assert!(check.is_finished(), "it waits for longer than a lease");
    check.await.unwrap().map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_live_member_is_found_also_one_that_comes_during_the_check() {
    let (harness, _one) = Harness::in_sync(1).await;
    assert!(check(&harness).await.unwrap().is_some());

    let harness = Harness::new();
    harness.join().stop();
    harness.run().await;
    let killed = harness.join();
    harness.pass(SOON).await;
    killed.stop();
    let (log, clock) = (harness.log.clone(), harness.clock.clone());
    let check = tokio::spawn(async move { live_member(&log, SOON, &clock).await });
    harness.pass(SOON).await;
    let _late = harness.join();
    harness.pass(LEASE * 2).await;
    assert!(check.await.unwrap().unwrap().is_some());
}

#[tokio::test]
async fn a_killed_member_is_waited_out_and_an_empty_table_is_not() {
    let harness = Harness::new();
    let (log, clock) = (harness.log.clone(), harness.clock.clone());
    assert_eq!(live_member(&log, SOON, &clock).await.unwrap(), None);

    let (harness, members) = Harness::in_sync(2).await;
    members.iter().for_each(super::harness::Instance::stop);
    assert_eq!(check(&harness).await, Ok(None));
}

#[tokio::test]
async fn a_table_that_cannot_be_read_is_an_error_and_not_an_answer() {
    let (harness, _one) = Harness::in_sync(1).await;
    harness.log.set_reachable(false);
    assert!(check(&harness).await.is_err());
}
