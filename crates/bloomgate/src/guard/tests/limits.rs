//! Caps on the maps that requests feed (promise P9).

use std::time::Duration;

use super::failpoints::At;
use super::harness::{Harness, MS};
use super::writer::Writer;
use super::{quiet, within};
use crate::error::{AdmitError, ReadError, WriteError};
use crate::guard::start::{MAX_FLIGHTS, MAX_WRITES};

#[tokio::test]
async fn flights_are_capped_and_what_is_too_much_is_shed_at_once() {
    let patient =
        |described: crate::GuardBuilder<_, _>| described.queue_timeout(Duration::from_secs(600));
    let harness = Harness::with([]).open_gate().tune(patient).build().await;
    let loads = harness.failpoints.hold(At::BeforeLoad);
    let ids = 0..i64::try_from(MAX_FLIGHTS).unwrap();
    let readers: Vec<_> = ids.map(|id| harness.spawn_get(id)).collect();
    let full = MAX_FLIGHTS as u64;
    super::until("all flights are under way", || harness.status().in_flight.loads == full).await;
    let shed = harness.get(-1).await;
    assert!(matches!(shed, Err(ReadError::Shed { waited: Duration::ZERO })), "{shed:?}");
    assert!(shed.unwrap_err().is_temporary());
    // Joining one that is under way takes no permit.
    let joiner = harness.spawn_get(0);
    quiet().await;
    assert!(!joiner.is_finished());
    for reader in readers {
        reader.abort();
    }
    quiet().await;
    assert_eq!(harness.status().in_flight.loads, full, "a flight went away with its caller");
    loads.let_all_go();
    assert!(within(joiner).await.unwrap().is_ok());
    super::until("all flights are over", || harness.status().in_flight.loads == 0).await;
    assert!(harness.get(-1).await.is_ok());
}

#[tokio::test]
async fn loads_wait_for_a_permit_until_the_queue_timeout() {
    let narrow = |described: crate::GuardBuilder<_, _>| {
        described.max_concurrent_loads(2).queue_timeout(250 * MS)
    };
    let harness = Harness::with([]).open_gate().shared().tune(narrow).build().await;
    let loads = harness.failpoints.hold(At::BeforeLoad);
    let readers: Vec<_> = (0..4).map(|id| harness.spawn_get(id)).collect();
    loads.arrivals(2).await;
    harness.pass(249 * MS).await;
    assert!(readers.iter().all(|reader| !reader.is_finished()));
    harness.pass(MS).await;
    assert_eq!(loads.count(), 2, "more at a time than allowed");
    let (mut shed, mut waiting) = (0, Vec::new());
    for reader in readers {
        if reader.is_finished() {
            let failed = within(reader).await.unwrap();
            assert!(matches!(failed, Err(ReadError::Shed { .. })), "{failed:?}");
            shed += 1;
        } else {
            waiting.push(reader);
        }
    }
    assert_eq!(shed, 2);
    assert_eq!(harness.status().counts.loader.shed, 2);
    loads.let_all_go();
    for reader in waiting {
        assert!(within(reader).await.unwrap().is_ok());
    }
    quiet().await;
    assert_eq!(harness.store().memory().len(), 2, "the leases of what was shed went back");
}

// Ids that were never seen to exist have a smaller share, so that a flood through an open gate leaves permits.
#[tokio::test]
async fn a_flood_of_unseen_ids_leaves_permits_for_rows_that_exist() {
    let narrow = |described: crate::GuardBuilder<_, _>| {
        described.max_concurrent_loads(4).max_unseen_loads(1)
    };
    let harness = Harness::with(1..=10).tune(narrow).build().await;
    harness.fake_backplane.lose_link();
    quiet().await;
    let loads = harness.failpoints.hold(At::BeforeLoad);
    let flood: Vec<_> = (1_000..1_050).map(|id| harness.spawn_get(id)).collect();
    quiet().await;
    assert_eq!(loads.count(), 1, "the flood took more than its share");
    let readers: Vec<_> = (1..=3).map(|id| harness.spawn_get(id)).collect();
    loads.arrivals(4).await;
    loads.let_all_go();
    for reader in readers {
        assert!(within(reader).await.unwrap().unwrap().value().is_some());
    }
    harness.pass(250 * MS).await;
    for one in flood {
        let _ = within(one).await.unwrap();
    }
}

#[tokio::test]
async fn open_writes_are_capped() {
    let harness = Harness::with([]).build().await;
    let announcing = harness.failpoints.hold(At::BeginOnBackplane);
    let many = i64::try_from(MAX_WRITES).unwrap();
    let writers: Vec<_> = (0..many).map(|id| Writer::call(&harness, id)).collect();
    announcing.arrivals(MAX_WRITES).await;
    assert_eq!(harness.open_writes(), MAX_WRITES as u64);
    let refused = harness.write(-1).await;
    assert!(
        matches!(refused, Err(WriteError::Begin(AdmitError::TooManyOpen { open })) if open == MAX_WRITES),
        "{refused:?}"
    );
    assert_eq!(harness.table.version(-1), 0, "run was started");
    announcing.let_all_go();
    for mut writer in writers {
        writer.running().await;
        writer.end().await;
    }
    harness.write(-1).await.unwrap();
    harness.is_tidy().await;
}

#[tokio::test]
async fn many_keys_at_once_are_read_in_order_and_within_the_loads_allowed() {
    let narrow = |described: crate::GuardBuilder<_, _>| described.max_concurrent_loads(3);
    let harness = Harness::with(0..50).open_gate().tune(narrow).build().await;
    let loads = harness.failpoints.hold(At::BeforeLoad);
    let guard = harness.guard.clone();
    let reading = tokio::spawn(async move {
        let ids: Vec<i64> = (0..100).rev().collect();
        guard.get_many(&ids).await
    });
    loads.arrivals(3).await;
    quiet().await;
    assert_eq!(loads.count(), 3);
    loads.let_all_go();
    let answers = within(reading).await.unwrap().unwrap();
    let ids: Vec<_> = answers.into_iter().map(|answer| answer.value().map(|row| row.id)).collect();
    let expected: Vec<_> = (0..100).rev().map(|id| (id < 50).then_some(id)).collect();
    assert_eq!(ids, expected);
}
