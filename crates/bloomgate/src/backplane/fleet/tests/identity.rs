//! A log that is lost, emptied, or continued by another server.

use std::time::Duration;

use super::harness::{Harness, LEASE, SOON, WINDOW};
use crate::answer::OpenReason;

#[tokio::test]
async fn over_an_empty_log_nothing_is_known_until_the_write_window_has_passed() {
    let harness = Harness::new();
    let first = harness.join();
    harness.pass(WINDOW - Duration::from_secs(1)).await;
    let second = harness.join();
    harness.pass(Duration::from_millis(500)).await;
    assert!(!first.events.in_sync() && !second.events.in_sync());
    harness.pass(Duration::from_secs(2)).await;
    assert!(first.events.in_sync(), "it has waited");
    assert!(second.events.in_sync(), "the first one has waited for it");
}

#[tokio::test]
async fn members_whose_lease_outlives_a_flush_keep_their_gates_and_announce_open_writes() {
    let (harness, members) = Harness::in_sync(2).await;
    let begin = members[0].begin_in_task(7);
    harness.pass(SOON).await;
    begin.outcome().await.unwrap();
    harness.log.flush();
    harness.pass(Duration::from_secs(2)).await;
    for member in &members {
        assert!(member.events.in_sync() && member.events.is_open(7));
        assert_eq!(member.events.voids(), 0);
        assert_eq!(member.events.epochs.lock().len(), 2, "another epoch is in the slots' names");
    }
    // What was announced counts for whoever joins now.
    let joined = harness.join();
    harness.pass(SOON).await;
    assert!(joined.events.in_sync() && joined.events.is_open(7));
}

#[tokio::test]
async fn after_a_flush_a_write_waits_a_lease_for_members_that_have_no_row_yet() {
    let (harness, members) = Harness::in_sync(2).await;
    harness.log.set_reachable_for(members[1].fleet.shared.instance, false);
    harness.log.flush();
    let begin = members[0].begin_in_task(7);
    while !begin.is_over() {
        harness.pass(Duration::from_millis(25)).await;
    }
    assert!(!members[1].events.refuses(7), "a missing row was taken for an acknowledgement");
}

#[tokio::test]
async fn a_member_whose_lease_is_over_when_the_log_is_another_one_resynchronises() {
    let (harness, members) = Harness::in_sync(2).await;
    harness.log.set_reachable(false);
    harness.pass(LEASE + Duration::from_secs(1)).await;
    assert_eq!(members[0].events.out_of_sync(), Some(OpenReason::LinkLost));
    harness.log.restart_empty();
    harness.log.set_reachable(true);
    harness.pass(Duration::from_secs(5)).await;
    for member in &members {
        assert_eq!(member.events.voids(), 1);
        assert!(!member.events.in_sync(), "writes that nobody announced may be open");
    }
    harness.pass(WINDOW).await;
    assert!(members.iter().all(|member| member.events.in_sync()));
}

#[tokio::test]
async fn an_outage_shorter_than_the_lease_is_not_noticed_by_readers() {
    let (harness, members) = Harness::in_sync(2).await;
    harness.log.set_reachable(false);
    for _ in 0..20 {
        harness.pass(SOON).await;
        assert!(members.iter().all(|member| member.events.refuses(7)));
    }
    harness.log.set_reachable(true);
    harness.pass(LEASE).await;
    assert!(members.iter().all(|member| member.events.refuses(7) && member.events.voids() == 0));
}

#[tokio::test]
async fn after_a_failover_that_lost_the_last_entries_members_still_hold_them() {
    let (harness, members) = Harness::in_sync(3).await;
    let begin = members[0].begin_in_task(7);
    harness.pass(SOON).await;
    let write = begin.outcome().await.unwrap();
    harness.log.lose_entries(1);
    let joined = harness.join();
    harness.pass(Duration::from_secs(2)).await;
    for member in &members {
        assert!(!member.events.refuses(7) && member.events.is_open(7));
        assert_eq!(member.events.voids(), 0);
    }
    assert!(joined.events.is_open(7), "the write was announced again");
    members[0].end(&write).await.unwrap();
    harness.pass(SOON).await;
    assert!(!joined.events.is_open(7));
}

#[tokio::test]
async fn a_promoted_replica_has_other_slots_though_it_has_the_epoch() {
    let (harness, members) = Harness::in_sync(2).await;
    harness.log.lose_entries(1);
    harness.pass(Duration::from_secs(2)).await;
    let names = members[0].events.epochs.lock().clone();
    assert_eq!(names.len(), 2, "slots from before the last writes are in reach: {names:?}");
    assert_ne!(names[0], names[1]);
    assert_eq!(names, *members[1].events.epochs.lock(), "both use the same slots");
}

#[tokio::test]
async fn an_end_under_another_log_than_its_begins_repeats_the_barrier() {
    let (harness, members) = Harness::in_sync(1).await;
    let write = members[0].begin(7).await.unwrap();
    // The writer loses its lease, and a member comes that knows nothing of the write.
    members[0].stop();
    harness.log.flush();
    let joined = harness.join();
    harness.pass(LEASE * 2).await;
    assert!(!joined.events.has(7));
    let ended = {
        let (member, write) = (members[0].clone(), write.clone());
        tokio::spawn(async move { member.end(&write).await })
    };
    harness.pass(SOON).await;
    assert!(ended.is_finished());
    assert!(joined.events.has(7), "End returned, and a member refuses the committed id");
    assert!(!joined.events.is_open(7));
}

#[tokio::test]
async fn a_process_that_sleeps_over_a_change_of_the_log_serves_nothing_when_it_wakes() {
    let (harness, members) = Harness::in_sync(2).await;
    harness.log.flush();
    harness.leap(Duration::from_secs(40)).await;
    assert!(members.iter().all(|member| !member.events.refuses(7)));
    harness.pass(WINDOW * 2).await;
    assert!(members.iter().all(|member| member.events.in_sync()));
}
