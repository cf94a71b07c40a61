//! Capacity of a Bloom gate: counted or given, and what happens once it is exceeded.

use super::failpoints::At;
use super::harness::{Harness, SECOND, WINDOW};
use super::until;
use crate::gate::Gate;
use crate::key::KeyBytes;
use crate::ports::{PeerWrite, WriteId};

/// More ids than the smallest counted gate holds at twice its false-positive rate.
const MANY: i64 = 16_000;

/// Inserts rows with these ids, each through a write of another instance.
fn insert(harness: &Harness, ids: std::ops::RangeInclusive<i64>) {
    let deadline = harness.clock.now() + WINDOW;
    let events = harness.fake_backplane.events();
    for id in ids {
        let write = PeerWrite::new(KeyBytes::of(&id), WriteId::fresh(), true, deadline);
        events.begin(&write).unwrap();
        harness.table.commit(id);
        events.end(&write);
    }
}

#[tokio::test]
async fn a_counted_gate_that_grew_too_full_is_rebuilt_larger_once() {
    let harness = Harness::with(1..=30).build().await;
    insert(&harness, 31..=MANY);
    let before = harness.status().gate;
    assert_eq!(before.generation, 1);
    harness.pass(5 * SECOND).await;
    until("the gate is rebuilt", || harness.status().gate.generation == 2).await;
    let after = harness.status().gate;
    assert!(after.bytes > before.bytes, "{after:?}");
    assert!((1..=MANY).all(|id| !harness.refuses(id)));
    assert!(harness.refuses(MANY + 1) || harness.refuses(MANY + 2));
    for _ in 0..3 {
        harness.pass(5 * SECOND).await;
    }
    assert_eq!(harness.status().gate.generation, 2, "the larger gate is not overfull");
}

#[tokio::test]
async fn a_capacity_that_was_given_is_kept_however_full_the_gate_is() {
    let given = |described: crate::GuardBuilder<_, _>| described.gate(Gate::bloom().items(100));
    let harness = Harness::with(1..=30).tune(given).build().await;
    insert(&harness, 31..=1_000);
    for _ in 0..3 {
        harness.pass(5 * SECOND).await;
    }
    assert_eq!(harness.status().gate.generation, 1);
}

#[tokio::test]
async fn a_capacity_that_was_given_needs_no_count() {
    let given = |described: crate::GuardBuilder<_, _>| described.gate(Gate::bloom().items(100));
    let harness = Harness::with(1..=30).tune(given);
    let (harness, counting) =
        harness.build_with(|failpoints, _| failpoints.hold(At::Counting)).await;
    assert!(harness.refuses(500) || harness.refuses(501));
    assert_eq!(counting.count(), 0, "the rows were counted");
}
