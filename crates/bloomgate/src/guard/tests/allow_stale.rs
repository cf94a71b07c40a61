//! The bypass of the shared cache after a write under `AllowStale`: how long it lasts.

use super::harness::{Harness, MS, SECOND, VALUE_TTL};
use super::store::Faults;
use super::{quiet, within};
use crate::answer::Tier;
use crate::guard::OnStoreFailure;
use crate::ports::{Entry, LeaseId, Slot};
use crate::shared_cache::SlotCalls as _;

async fn allow_stale() -> Harness {
    let accept = |described: crate::GuardBuilder<_, _>| {
        described.on_store_failure(OnStoreFailure::AllowStale)
    };
    Harness::with([7]).open_gate().shared().tune(accept).build().await
}

/// A write that reaches neither the slot nor the lease in it.
async fn write_without_intent(harness: &Harness) {
    harness.store().faults(Faults {
        no_put_intent: true,
        no_clear_intent: true,
        ..Faults::default()
    });
    harness.write(7).await.unwrap();
    assert_eq!(harness.status().counts.writes_without_intent, 1);
}

#[tokio::test]
async fn the_old_entry_is_not_read_to_the_last_millisecond_of_its_life() {
    let harness = allow_stale().await;
    let _ = within(harness.peer().await.get(&7)).await.unwrap();
    quiet().await;
    write_without_intent(&harness).await;
    harness.pass(VALUE_TTL - MS).await;
    assert!(matches!(harness.shared_slot(7).await, Slot::Value { .. }), "the old row still stands");
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
}

// A load of another process that began before the write may fill the slot as long as its lease
// lives, and that entry has a whole time to live before it.
#[tokio::test]
async fn an_old_entry_that_is_filled_after_the_write_is_not_read_either() {
    let harness = allow_stale().await;
    let old = serde_json::to_vec(&harness.table.get(7).unwrap()).unwrap();
    let lease = LeaseId::fresh();
    assert_eq!(harness.take_lease(7, lease).await, Slot::LeaseGranted);
    write_without_intent(&harness).await;
    harness.pass(2 * SECOND).await;
    let slot = harness.slot(7);
    let ttl_ms = u64::try_from(VALUE_TTL.as_millis()).unwrap();
    let until = harness.clock.unix_ms() + ttl_ms;
    let fill =
        harness.store().memory().fill(&slot, lease, Entry::Value(old.into()), until, VALUE_TTL);
    let _ = fill.await.unwrap();
    harness.pass(VALUE_TTL - MS).await;
    assert!(matches!(harness.shared_slot(7).await, Slot::Value { .. }), "the old row still stands");
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
}
