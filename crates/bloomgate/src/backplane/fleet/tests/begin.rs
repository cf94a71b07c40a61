//! Begin's barrier.

use std::time::Duration;

use super::harness::{Harness, LEASE, SOON};
use crate::ports::Backplane as _;

#[tokio::test]
async fn a_write_returns_from_begin_once_every_member_has_admitted_its_key() {
    let (harness, members) = Harness::in_sync(3).await;
    assert!(members.iter().all(|member| member.events.refuses(7)));
    let begin = members[0].begin_in_task(7);
    harness.pass(SOON).await;
    let write = begin.outcome().await.unwrap();
    for member in &members {
        assert!(!member.events.refuses(7) && member.events.is_open(7));
        assert!(member.events.refuses(8));
    }
    members[0].end(&write).await.unwrap();
    harness.pass(SOON).await;
    assert!(members.iter().all(|member| member.events.has(7) && !member.events.is_open(7)));
}

#[tokio::test]
async fn a_fleet_of_one_waits_for_nobody() {
    let (harness, members) = Harness::in_sync(1).await;
    let before = harness.now();
    let write = members[0].begin(7).await.unwrap();
    members[0].end(&write).await.unwrap();
    assert_eq!(harness.now(), before);
}

#[tokio::test]
async fn a_write_waits_for_a_silent_member_once_and_for_at_most_five_seconds() {
    let (harness, members) = Harness::in_sync(2).await;
    members[1].stop();
    // Just renewed: it may refuse for as long as possible.
    let begin = members[0].begin_in_task(7);
    let began = harness.now();
    while !begin.is_over() {
        assert!(harness.now().since(began) < Duration::from_secs(5));
        harness.pass(Duration::from_millis(25)).await;
    }
    assert!(!members[1].events.refuses(7), "the write returned while a member refuses its key");
    assert!(harness.now().since(began) > LEASE);
    begin.outcome().await.unwrap();
    // Fenced and waited for, it delays nobody any more.
    let begin = members[0].begin_in_task(8);
    harness.pass(SOON).await;
    assert!(begin.is_over());
}

#[tokio::test]
async fn a_member_that_left_is_not_waited_for() {
    let (harness, members) = Harness::in_sync(2).await;
    members[1].fleet.leave().await;
    let begin = members[0].begin_in_task(7);
    harness.pass(SOON).await;
    assert!(begin.is_over());
}

#[tokio::test]
async fn concurrent_writes_share_their_records_and_their_looks() {
    const WRITES: i64 = 1_000;
    let (harness, members) = Harness::in_sync(3).await;
    let before = harness.log.steps();
    let begins: Vec<_> = (0..WRITES).map(|key| members[0].begin_in_task(key)).collect();
    harness.pass(SOON).await;
    for begin in begins {
        begin.outcome().await.unwrap();
    }
    let steps = harness.log.steps() - before;
    assert!(steps < 300, "{steps} steps for {WRITES} writes");
    assert!((0..WRITES).all(|key| members[2].events.has(key)));
}

#[tokio::test]
async fn a_write_fails_while_the_log_can_not_be_reached() {
    let (harness, members) = Harness::in_sync(2).await;
    harness.log.set_reachable(false);
    let begin = members[0].begin_in_task(7);
    harness.pass(Duration::from_secs(1)).await;
    assert!(begin.outcome().await.is_err());
    harness.log.set_reachable(true);
    let begin = members[0].begin_in_task(7);
    harness.pass(Duration::from_secs(6)).await;
    begin.outcome().await.unwrap();
}

#[tokio::test]
async fn a_begin_whose_log_is_lost_before_its_last_look_is_appended_anew() {
    let (harness, members) = Harness::in_sync(2).await;
    members[1].stop();
    let begin = members[0].begin_in_task(7);
    harness.pass(Duration::from_millis(200)).await;
    harness.log.flush();
    let joined = harness.join();
    harness.pass(Duration::from_secs(1)).await;
    assert!(!begin.is_over(), "the stopped member may still refuse");
    harness.pass(Duration::from_secs(5)).await;
    begin.outcome().await.unwrap();
    assert!(joined.events.is_open(7), "a member of the new log does not know of the write");
}

#[tokio::test]
async fn a_write_that_a_member_has_no_room_for_is_not_acknowledged_by_it() {
    let (harness, members) = Harness::in_sync(2).await;
    *members[1].events.limit.lock() = 0;
    let begin = members[0].begin_in_task(7);
    harness.pass(Duration::from_millis(500)).await;
    // It stopped refusing and took its row away rather than delay the write.
    assert!(!members[1].events.in_sync());
    assert!(begin.is_over());
    *members[1].events.limit.lock() = usize::MAX;
    harness.pass(Duration::from_secs(3)).await;
    assert!(members[1].events.in_sync() && members[1].events.is_open(7));
    assert_eq!(members[1].events.voids(), 0);
}
