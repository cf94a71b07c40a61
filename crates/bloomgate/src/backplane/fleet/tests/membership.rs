//! Joining, leases, fencing, trimming.

use std::time::Duration;

use bytes::Bytes;

use super::super::FleetSettings;
use super::harness::{Harness, LEASE, SOON, WINDOW};
use crate::answer::OpenReason;
use crate::ports::{FleetLog as _, InstanceId};

#[tokio::test]
async fn a_joiner_knows_the_writes_that_were_open_before_it_came() {
    let (harness, members) = Harness::in_sync(1).await;
    let write = members[0].begin(7).await.unwrap();
    let joined = harness.join();
    harness.pass(SOON).await;
    assert!(joined.events.in_sync());
    assert!(joined.events.is_open(7) && joined.events.has(7));
    members[0].end(&write).await.unwrap();
    harness.pass(SOON).await;
    assert!(!joined.events.is_open(7));
}

#[tokio::test]
async fn a_joiner_takes_no_lease_before_it_has_applied_what_was_there() {
    let (harness, members) = Harness::in_sync(1).await;
    members[0].begin(7).await.unwrap();
    let joined = harness.join();
    for _ in 0..200 {
        assert!(!joined.events.refuses(7));
        tokio::task::yield_now().await;
    }
    assert!(joined.events.in_sync());
}

#[tokio::test]
async fn a_lease_ends_by_the_clock_and_is_renewed_before_that() {
    let (harness, members) = Harness::in_sync(2).await;
    harness.pass(LEASE * 3).await;
    assert!(members.iter().all(|member| member.events.in_sync()));
    members[1].stop();
    harness.pass(LEASE).await;
    assert!(members[0].events.in_sync() && !members[1].events.in_sync());
}

#[tokio::test]
async fn a_member_that_was_fenced_during_a_pause_catches_up_and_keeps_its_gate() {
    let (harness, members) = Harness::in_sync(2).await;
    harness.log.set_reachable_for(members[1].fleet.shared.instance, false);
    let begin = members[0].begin_in_task(7);
    harness.pass(Duration::from_secs(5)).await;
    let write = begin.outcome().await.unwrap();
    assert!(!members[1].events.in_sync());
    harness.pass(Duration::from_secs(5)).await;
    harness.log.set_reachable_for(members[1].fleet.shared.instance, true);
    let check = || assert!(!members[1].events.refuses(7), "a lease before what came meanwhile");
    harness.pass_checking(Duration::from_secs(2), check).await;
    assert!(members[1].events.in_sync());
    assert!(members[1].events.has(7) && members[1].events.is_open(7));
    assert_eq!(members[1].events.voids(), 0, "it missed nothing");
    members[0].end(&write).await.unwrap();
    harness.pass(SOON).await;
    assert!(!members[1].events.is_open(7));
}

#[tokio::test]
async fn a_member_whose_unread_entries_were_trimmed_resynchronises() {
    let (harness, members) = Harness::in_sync(2).await;
    harness.log.set_reachable_for(members[1].fleet.shared.instance, false);
    let begin = members[0].begin_in_task(7);
    harness.pass(Duration::from_secs(6)).await;
    let write = begin.outcome().await.unwrap();
    members[0].end(&write).await.unwrap();
    let unread = members[0].begin(8).await.unwrap();
    members[0].end(&unread).await.unwrap();
    harness.pass(WINDOW * 2).await;
    assert!(!members[1].events.has(8));
    harness.log.set_reachable_for(members[1].fleet.shared.instance, true);
    harness.pass(Duration::from_secs(3)).await;
    assert_eq!(members[1].events.voids(), 1);
    assert!(!members[1].events.refuses(8));
}

#[tokio::test]
async fn a_log_over_its_cap_is_trimmed_and_whoever_had_not_read_it_resynchronises() {
    let (harness, members) = Harness::in_sync(2).await;
    harness.log.overflow(1_500, 1_000);
    harness.pass(Duration::from_secs(2)).await;
    assert!(members.iter().all(|member| member.events.voids() == 1));
    assert!(members.iter().all(|member| !member.events.in_sync()), "writes may be unknown");
    harness.pass(WINDOW).await;
    assert!(members.iter().all(|member| member.events.in_sync() && member.events.voids() == 1));
}

#[tokio::test]
async fn entries_are_trimmed_after_the_write_window_and_not_before() {
    let (harness, members) = Harness::in_sync(2).await;
    harness.pass(WINDOW * 2).await;
    let length = || async { harness.log.look().await.unwrap().unwrap().length };
    for key in 0..20 {
        let begin = members[0].begin_in_task(key);
        harness.pass(SOON).await;
        begin.outcome().await.unwrap();
    }
    harness.pass(WINDOW - Duration::from_secs(3)).await;
    assert!(length().await >= 20);
    harness.pass(Duration::from_secs(8)).await;
    assert!(length().await <= 2, "{}", length().await);
    assert!(members.iter().all(|member| member.events.in_sync()));
}

#[tokio::test]
async fn a_member_that_is_silent_for_long_is_removed_although_nobody_writes() {
    let (harness, members) = Harness::in_sync(3).await;
    members[2].stop();
    harness.pass(LEASE * 5).await;
    let view = harness.log.look().await.unwrap().unwrap();
    assert_eq!(view.members.len(), 2);
    assert!(members[0].events.in_sync() && members[1].events.in_sync());
}

#[tokio::test]
async fn records_of_another_version_open_the_gate_and_delay_nobody() {
    let (harness, members) = Harness::in_sync(2).await;
    let newer = InstanceId::fresh();
    harness.log.append(newer, Bytes::from_static(&[200, 1, 2, 3])).await.unwrap();
    harness.pass(SOON).await;
    for member in &members {
        assert_eq!(member.events.out_of_sync(), Some(OpenReason::UnknownRecords));
    }
    let begin = members[0].begin_in_task(7);
    harness.pass(SOON).await;
    assert!(begin.is_over());
}

#[tokio::test]
async fn a_shorter_lease_than_the_fleets_is_waited_for_by_its_own_length() {
    let (harness, members) = Harness::in_sync(1).await;
    let second = Duration::from_secs(1);
    let hasty = FleetSettings::default().lease(second).renew_every(second / 4).fence_after(second);
    let hasty = harness.join_with(hasty);
    harness.pass(SOON).await;
    assert!(hasty.events.in_sync());
    hasty.stop();
    let began = harness.now();
    let begin = members[0].begin_in_task(7);
    while !begin.is_over() {
        harness.pass(Duration::from_millis(25)).await;
    }
    assert!(!hasty.events.refuses(7));
    assert!(harness.now().since(began) < LEASE);
}
