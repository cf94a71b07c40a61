//! Leases that go back to the shared cache, entries past their own end.

use std::sync::Arc;
use std::time::Duration;

use super::failpoints::At;
use super::fake_table::Row;
use super::harness::{Harness, MS, NULL_TTL, SECOND, VALUE_TTL};
use super::store::Faults;
use super::{quiet, within};
use crate::answer::Tier;
use crate::clock::Clock;
use crate::guard::lease::Lease;
use crate::key::KeyBytes;
use crate::ports::{Entry, Filled, LeaseId, Slot, SlotKey, Store};
use crate::shared_cache::{MemoryStore, SharedCache, SlotCalls as _};

/// The store granted the lease, and its answer never came.
#[tokio::test]
async fn a_lease_whose_grant_got_lost_goes_back() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    let answer = harness.failpoints.hold(At::AfterRead);
    let reader = harness.spawn_get(7);
    answer.arrived().await;
    assert_eq!(harness.shared_slot(7).await, Slot::LeaseHeld);
    // Past the store's budget, far from the lease's end.
    harness.pass(SECOND).await;
    let found = within(reader).await.unwrap().unwrap();
    assert_eq!(super::harness::seen(found), (Some(1), Tier::Loader));
    quiet().await;
    assert_eq!(harness.shared_slot(7).await, Slot::Empty, "the lease is left");
}

#[tokio::test]
async fn a_lease_goes_back_when_its_fill_fails() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    harness.store().faults(Faults { no_fill: true, ..Faults::default() });
    for id in [7, 8] {
        let _ = harness.get(id).await.unwrap();
        quiet().await;
        assert_eq!(harness.shared_slot(id).await, Slot::Empty, "the lease of {id} is left");
    }
}

/// The fill was stored, and its answer never came: the release that follows leaves the entry.
#[tokio::test]
async fn an_entry_whose_fill_was_not_answered_stays() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    let answer = harness.failpoints.hold(At::AfterFill);
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    answer.arrived().await;
    harness.pass(SECOND).await;
    assert!(matches!(harness.shared_slot(7).await, Slot::Value { .. }));
}

/// As when the runtime drops the flight's task in the middle of its load.
#[tokio::test]
async fn a_lease_goes_back_when_it_is_dropped() {
    let clock = Clock::manual().0;
    let store = MemoryStore::new(clock.clone());
    let arc = Arc::new(store.clone()) as Arc<dyn Store>;
    let shared = SharedCache::new("drops".into(), arc, SECOND, clock, Arc::default());
    let shared = Arc::new(shared);
    let slot = SlotKey::new("test:".into(), 1, KeyBytes::of(&7_i64));
    let lease = Lease::on(&shared, slot.clone());
    let leased = shared.get_or_lease(&slot, lease.id, 60 * SECOND).await.unwrap();
    assert_eq!(leased, Slot::LeaseGranted);
    drop(lease);
    quiet().await;
    assert_eq!(store.get(&slot).await.unwrap(), Slot::Empty);

    // One that was filled or lost is disarmed: its drop must not cost a call.
    let lease = Lease::on(&shared, slot.clone());
    let leased = shared.get_or_lease(&slot, lease.id, 60 * SECOND).await.unwrap();
    assert_eq!(leased, Slot::LeaseGranted);
    lease.disarm();
    quiet().await;
    assert_eq!(store.get(&slot).await.unwrap(), Slot::LeaseHeld);
}

/// Stores an entry as another process does, valid until `until` (Unix ms), although the server
/// keeps it for an hour.
async fn put(harness: &Harness, entry: Entry, until: u64) {
    let lease = LeaseId::fresh();
    assert_eq!(harness.take_lease(7, lease).await, Slot::LeaseGranted);
    let memory = harness.store().memory();
    let filled = memory.fill(&harness.slot(7), lease, entry, until, 3_600 * SECOND).await;
    assert_eq!(filled.unwrap(), Filled::Stored);
}

/// The server's clock, or its expiry, may be late: the end in the entry decides.
#[tokio::test]
async fn an_entry_past_its_own_end_is_not_served_though_the_server_still_has_it() {
    let row = Entry::Value(serde_json::to_vec(&Row { id: 7, version: 1 }).unwrap().into());
    for (entry, ttl, shared) in [(row, VALUE_TTL, Some(1)), (Entry::Null, NULL_TTL, None::<usize>)]
    {
        for (left, tier) in [(MS, Tier::Shared), (Duration::ZERO, Tier::Loader)] {
            let harness = Harness::with([7]).open_gate().shared().build().await;
            let end = harness.clock.unix_ms() + u64::try_from(ttl.as_millis()).unwrap();
            put(&harness, entry.clone(), end).await;
            harness.time.advance(ttl - left);
            let found = harness.seen(7).await;
            let expected = if tier == Tier::Shared { shared } else { Some(1) };
            assert_eq!(found, (expected, tier), "{entry:?} with {left:?} left");
        }
        // By hours, as after a pause: no subtraction may wrap.
        let harness = Harness::with([7]).open_gate().shared().build().await;
        put(&harness, entry, harness.clock.unix_ms() - 3_600_000).await;
        assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    }
}
