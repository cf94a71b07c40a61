//! A load in flight while its row is written: what it read is not kept (case 29, rules A3, A4,
//! B11, B12 and B13).

use futures_util::FutureExt as _;

use super::failpoints::At;
use super::harness::{Harness, NULL_TTL, SECOND, VALUE_TTL, seen};
use super::quiet;
use super::within;
use super::writer::Writer;
use crate::answer::Tier;
use crate::guard::open_write::Kind;
use crate::key::KeyBytes;
use crate::ports::{PeerWrite, Slot, WriteId};

#[derive(Clone, Copy, Debug)]
enum Change {
    Insert,
    Update,
    Delete,
}

/// Rule A3 for all changes: the reader reads, the writer writes all it has to, the reader goes on.
async fn reader_is_overtaken(shared: bool, change: Change) {
    let exists = !matches!(change, Change::Insert);
    let harness = Harness::with(exists.then_some(7)).open_gate().shared_if(shared).build().await;
    let loaded = harness.failpoints.hold_one(At::AfterLoad);
    let reader = harness.spawn_get(7);
    loaded.arrived().await;

    let kind = if exists { Kind::Existing } else { Kind::Admitting };
    let mut writer = Writer::call_as(&harness, 7, kind);
    writer.running().await;
    match change {
        Change::Delete => writer.delete().await,
        Change::Insert | Change::Update => writer.commit().await,
    }
    writer.end().await;

    // Rule A4: a request made now doesn't join the old flight, whose answer is outdated.
    let now = harness.table.get(7).map(|row| row.version);
    assert_eq!(harness.seen(7).await, (now, Tier::Loader), "{change:?}, shared: {shared}");
    loaded.let_all_go();
    let old = seen(within(reader).await.unwrap().unwrap());
    assert_eq!(old, (exists.then_some(1), Tier::Loader), "it answers with what it read");
    quiet().await;

    assert_eq!(harness.seen(7).await.0, now, "{change:?}, shared: {shared}");
    if shared {
        let peer = harness.peer().await;
        let answer = within(peer.get(&7)).await.unwrap();
        assert_eq!(seen(answer).0, now, "{change:?} in the shared cache");
    }
    harness.is_tidy().await;
}

#[tokio::test]
async fn case_29_a_null_that_was_read_before_an_insert_is_not_kept() {
    reader_is_overtaken(false, Change::Insert).await;
    reader_is_overtaken(true, Change::Insert).await;
}

#[tokio::test]
async fn case_29_a_row_that_was_read_before_an_update_is_not_kept() {
    reader_is_overtaken(false, Change::Update).await;
    reader_is_overtaken(true, Change::Update).await;
}

#[tokio::test]
async fn case_29_a_row_that_was_read_before_a_delete_is_not_kept() {
    reader_is_overtaken(false, Change::Delete).await;
    reader_is_overtaken(true, Change::Delete).await;
}

// Rule A3: the generation moves at Begin and at End, whatever the End is.
#[tokio::test]
async fn the_generation_of_a_key_moves_at_begin_and_at_end() {
    let harness = Harness::with([7]).shared().build().await;
    let key = KeyBytes::of(&7_i64);
    let mut last = harness.guard.0.local.version(&key).generation;
    let mut has_moved = |when: &str| {
        let now = harness.guard.0.local.version(&key).generation;
        assert!(now > last, "{when}");
        last = now;
    };
    let writer = Writer::begin(&harness, 7).await;
    has_moved("at Begin");
    writer.end().await;
    has_moved("at End");
    let writer = Writer::begin(&harness, 7).await;
    has_moved("at Begin");
    writer.lose().await;
    harness.pass(super::harness::WINDOW).await;
    has_moved("at W");
    harness.fake_backplane.refuse(true);
    assert!(harness.write(7).await.is_err());
    has_moved("at a Begin that was rolled back");
}

// "At Begin *and* at End": what is read after Begin and before the commit is old too,
// though Begin has moved the generation before.
#[tokio::test]
async fn case_29_what_was_read_while_the_write_was_open_is_not_kept() {
    for shared in [false, true] {
        let harness = Harness::with([]).open_gate().shared_if(shared).build().await;
        let mut writer = Writer::begin(&harness, 7).await;
        assert_eq!(harness.seen(7).await, (None, Tier::Loader));
        assert_eq!(harness.status().counts.nulls_stored.local, 0, "kept while the key was open");
        let loaded = harness.failpoints.hold_one(At::AfterLoad);
        let reader = harness.spawn_get(7);
        loaded.arrived().await;
        writer.commit().await;
        writer.end().await;
        loaded.let_all_go();
        assert_eq!(seen(within(reader).await.unwrap().unwrap()).0, None);
        assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader), "shared: {shared}");
    }
}

// Rule A3 for copies: a hit in the shared cache that is on its way while a write runs.
#[tokio::test]
async fn case_29_a_shared_hit_that_was_overtaken_is_not_copied_into_the_local_cache() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    let _ = within(harness.peer().await.get(&7)).await.unwrap();
    quiet().await;
    assert!(matches!(harness.shared_slot(7).await, Slot::Value { .. }));
    let answered = harness.failpoints.hold_one(At::AfterRead);
    let reader = harness.spawn_get(7);
    answered.arrived().await;
    harness.write(7).await.unwrap();
    answered.let_all_go();
    assert_eq!(seen(within(reader).await.unwrap().unwrap()), (Some(1), Tier::Shared));
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Local));
}

// Rule A4 for hits: a flight that has asked the shared cache has started, and no later request may
// join it.
#[tokio::test]
async fn case_29_a_request_after_a_write_does_not_join_a_shared_hit_on_its_way() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    let _ = within(harness.peer().await.get(&7)).await.unwrap();
    quiet().await;
    let answered = harness.failpoints.hold_one(At::AfterRead);
    let early = harness.spawn_get(7);
    answered.arrived().await;
    harness.write(7).await.unwrap();
    let late = harness.spawn_get(7);
    quiet().await;
    answered.let_all_go();
    assert_eq!(seen(within(late).await.unwrap().unwrap()), (Some(2), Tier::Loader));
    assert_eq!(seen(within(early).await.unwrap().unwrap()), (Some(1), Tier::Shared));
}

// Rule A4: whether the caches are skipped is decided when a flight starts. Its write intent lost, a write
// leaves an outdated entry in the slot, and whoever joins the flight before it starts would get that.
#[tokio::test]
async fn case_29_a_flight_that_starts_after_a_write_has_begun_skips_the_shared_cache() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    let _ = within(harness.peer().await.get(&7)).await.unwrap();
    quiet().await;
    let mut reader = std::pin::pin!(harness.guard.get(&7));
    assert!((&mut reader).now_or_never().is_none(), "its flight is made, and hasn't run");
    let deadline = crate::clock::Moment::NEVER;
    let write = PeerWrite::new(KeyBytes::of(&7_i64), WriteId::fresh(), true, deadline);
    harness.guard.0.gate.begin(&write).unwrap();
    harness.table.commit(7);
    assert_eq!(seen(within(reader).await.unwrap()), (Some(2), Tier::Loader));
}

// Rule B10: the write intent takes the lease's place, and B12: the fill finds no lease.
#[tokio::test]
async fn case_29_a_fill_that_is_on_its_way_meets_the_write_intent() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    let filling = harness.failpoints.hold_one(At::BeforeFill);
    let _reader = harness.spawn_get(7);
    filling.arrived().await;
    let mut writer = Writer::begin(&harness, 7).await;
    writer.commit().await;
    filling.let_all_go();
    quiet().await;
    assert_eq!(harness.shared_slot(7).await, Slot::WriteIntent);
    writer.end().await;
    assert_eq!(harness.shared_slot(7).await, Slot::Empty);
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
}

// Rule B13, filling: the write intent was flushed, so that a read
// sent before Begin gets a lease after it. Nothing at the server stops the fill; only the moved
// generation does.
#[tokio::test]
async fn case_29_a_lease_that_was_won_because_the_intent_was_flushed_is_not_filled() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    let asking = harness.failpoints.hold_one(At::BeforeRead);
    let reader = harness.spawn_get(7);
    asking.arrived().await;
    let mut writer = Writer::begin(&harness, 7).await;
    harness.store().memory().flush();
    asking.let_all_go();
    let _ = within(reader).await.unwrap().unwrap();
    quiet().await;
    assert_eq!(harness.shared_slot(7).await, Slot::Empty, "the lease was to go back");
    writer.commit().await;
    writer.end().await;
    assert_eq!(harness.seen(7).await.0, Some(2));
}

// Rule B13, leasing: a flight that was started before Begin and asks after it takes no lease, even if
// the write intent is gone.
#[tokio::test]
async fn case_29_a_flight_that_asks_after_begin_takes_no_lease() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    let lease = crate::ports::LeaseId::fresh();
    assert_eq!(harness.take_lease(7, lease).await, Slot::LeaseGranted);
    // The flight finds another's lease, and waits.
    let reader = harness.spawn_get(7);
    quiet().await;
    let mut writer = Writer::begin(&harness, 7).await;
    harness.store().memory().flush();
    let loading = harness.failpoints.hold_one(At::BeforeLoad);
    harness.pass(SECOND).await;
    loading.arrived().await;
    assert_eq!(
        harness.shared_slot(7).await,
        Slot::Empty,
        "a lease was taken while the key is open"
    );
    loading.let_all_go();
    let _ = within(reader).await.unwrap().unwrap();
    writer.commit().await;
    writer.end().await;
    harness.is_tidy().await;
}

// Rule A4: while a key is open, both caches are skipped and nothing is published.
#[tokio::test]
async fn case_29_while_a_write_is_open_its_key_is_always_loaded_and_never_kept() {
    for shared in [false, true] {
        let harness = Harness::with([7]).open_gate().shared_if(shared).build().await;
        assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
        assert_eq!(harness.seen(7).await, (Some(1), Tier::Local));
        let mut writer = Writer::begin(&harness, 7).await;
        for loads in 2..5 {
            assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
            assert_eq!(harness.loads(), loads);
        }
        writer.commit().await;
        for loads in 5..8 {
            assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
            assert_eq!(harness.loads(), loads);
        }
        writer.end().await;
        assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
        assert_eq!(harness.seen(7).await, (Some(2), Tier::Local));
    }
}

// Rule A4 with an evicted write intent: what another process put there meanwhile isn't read.
#[tokio::test]
async fn case_29_while_a_write_is_open_the_shared_cache_is_not_even_asked() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    let mut writer = Writer::begin(&harness, 7).await;
    harness.store().memory().evict(&harness.slot(7));
    let peer = harness.peer().await;
    let _ = within(peer.get(&7)).await.unwrap();
    quiet().await;
    assert!(matches!(harness.shared_slot(7).await, Slot::Value { .. }));
    writer.commit().await;
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader));
    // Rule B14: End finds no write intent and deletes what stands there.
    writer.end().await;
    assert_eq!(harness.shared_slot(7).await, Slot::Empty);
}

// Rule A4: a flight that has asked nothing yet may be joined by any request; one that has, may not.
#[tokio::test]
async fn case_29_a_flight_that_waits_in_the_queue_is_joined_after_a_write_but_keeps_nothing() {
    let one_permit = |described: crate::GuardBuilder<_, _>| {
        described.max_concurrent_loads(1).queue_timeout(20 * SECOND)
    };
    let harness = Harness::with([7, 8]).open_gate().tune(one_permit).build().await;
    let loading = harness.failpoints.hold(At::BeforeLoad);
    let other = harness.spawn_get(8);
    loading.arrived().await;
    let queued = harness.spawn_get(7);
    quiet().await;
    harness.write(7).await.unwrap();
    let joiner = harness.spawn_get(7);
    quiet().await;
    loading.let_all_go();
    for reader in [other, queued, joiner] {
        let _ = within(reader).await.unwrap().unwrap();
    }
    assert_eq!(harness.loads(), 2, "the joiner shared the load that hadn't begun");
    assert_eq!(harness.seen(7).await, (Some(2), Tier::Loader), "an old flight published");
}

// Rule B11: a write intent of another process.
#[tokio::test]
async fn case_29_a_reader_in_another_process_caches_nothing_while_a_write_is_open() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    let mut writer = Writer::begin(&harness, 7).await;
    let peer = harness.peer().await;
    assert_eq!(seen(within(peer.get(&7)).await.unwrap()), (Some(1), Tier::Loader));
    quiet().await;
    assert_eq!(harness.shared_slot(7).await, Slot::WriteIntent);
    writer.commit().await;
    writer.end().await;
    let again = seen(within(peer.get(&7)).await.unwrap());
    assert_eq!(again, (Some(2), Tier::Loader), "it kept what it loaded under the intent");
    quiet().await;
    writer = Writer::begin(&harness, 7).await;
    writer.end().await;
    let newcomer = harness.peer().await;
    assert_eq!(seen(within(newcomer.get(&7)).await.unwrap()), (Some(2), Tier::Loader));
}

// Rule B12 across processes: a peer's load that was overtaken can't fill.
#[tokio::test]
async fn case_29_a_load_in_another_process_that_was_overtaken_fills_nothing() {
    let harness = Harness::with([]).open_gate().shared().build().await;
    let lease = crate::ports::LeaseId::fresh();
    assert_eq!(harness.take_lease(7, lease).await, Slot::LeaseGranted);
    harness.write(7).await.unwrap();
    let slot = harness.slot(7);
    let filled = crate::shared_cache::SlotCalls::fill(
        harness.store().memory(),
        &slot,
        lease,
        crate::ports::Entry::Null,
        u64::MAX,
        NULL_TTL,
    );
    assert_eq!(filled.await.unwrap(), crate::ports::Filled::LeaseLost);
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
}

// Case 29 for fail-safe: an expired row that is kept for errors is dropped by a write too.
#[tokio::test]
async fn case_29_a_stale_row_does_not_outlive_a_write_even_if_the_database_fails() {
    let harness = Harness::with([7]).open_gate().build().await;
    let _ = harness.seen(7).await;
    harness.time.advance(VALUE_TTL);
    harness.mishap(7, super::harness::Mishap::Error);
    let stale = harness.get(7).await.unwrap();
    assert!(matches!(stale, crate::Answer::Found { stale: true, .. }));
    harness.write(7).await.unwrap();
    harness.mishap(7, super::harness::Mishap::Error);
    assert!(harness.get(7).await.is_err(), "the row as it was before the write was served");
}
