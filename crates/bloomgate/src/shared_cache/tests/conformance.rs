//! The rules of section B of the protocol, for every store.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::super::SlotCalls as _;
use super::store_fixture::{LONG, SHORT, StoreFixture};
use crate::key::{Key, KeyBytes};
use crate::ports::{
    Entry, Filled, LeaseId, MAX_INTENT_WRITES, Slot, SlotKey, SlotOp, SlotReply, Store, WriteId,
};

const UNTIL: u64 = 1_900_000_000_123;

fn value(payload: &'static str) -> Entry {
    Entry::Value(Bytes::from_static(payload.as_bytes()))
}

fn stored(payload: &'static str) -> Slot {
    Slot::Value { payload: Bytes::from_static(payload.as_bytes()), until: UNTIL }
}

impl StoreFixture {
    async fn get(&self, slot: &SlotKey) -> Slot {
        self.store.get(slot).await.unwrap()
    }

    async fn get_or_lease(&self, slot: &SlotKey, lease: LeaseId) -> Slot {
        self.store.get_or_lease(slot, lease, LONG).await.unwrap()
    }

    async fn fill(&self, slot: &SlotKey, lease: LeaseId, entry: Entry) -> Filled {
        let filled = self.store.fill(slot, lease, entry, UNTIL, LONG).await;
        filled.unwrap()
    }

    /// Puts an entry in, through a lease.
    async fn put(&self, slot: &SlotKey, entry: Entry) {
        let lease = LeaseId::fresh();
        assert_eq!(self.get_or_lease(slot, lease).await, Slot::LeaseGranted);
        assert_eq!(self.fill(slot, lease, entry).await, Filled::Stored);
    }

    async fn put_intent(&self, slot: &SlotKey, write: WriteId, ttl: Duration) {
        self.store.put_intent(slot, write, ttl).await.unwrap();
    }

    async fn clear_intent(&self, slot: &SlotKey, write: WriteId) {
        self.store.clear_intent(slot, write).await.unwrap();
    }

    async fn release(&self, slot: &SlotKey, lease: LeaseId) {
        self.store.release(slot, lease).await.unwrap();
    }
}

async fn an_empty_slot_is_leased_to_the_first_caller_only(fixture: StoreFixture) {
    let (slot, first) = (fixture.slot(&1_i64), LeaseId::fresh());
    fixture.store.prepare().await.unwrap();
    assert_eq!(fixture.get(&slot).await, Slot::Empty);
    assert_eq!(fixture.get_or_lease(&slot, first).await, Slot::LeaseGranted);
    assert_eq!(fixture.get_or_lease(&slot, LeaseId::fresh()).await, Slot::LeaseHeld);
    assert_eq!(fixture.get_or_lease(&slot, first).await, Slot::LeaseHeld);
    assert_eq!(fixture.get(&slot).await, Slot::LeaseHeld);
    assert_eq!(fixture.get(&fixture.slot(&2_i64)).await, Slot::Empty);
}

async fn only_the_holder_of_a_lease_fills_and_only_once(fixture: StoreFixture) {
    let (slot, lease) = (fixture.slot(&1_i64), LeaseId::fresh());
    let early = fixture.fill(&slot, lease, value("early")).await;
    assert_eq!(early, Filled::LeaseLost);
    assert_eq!(fixture.get(&slot).await, Slot::Empty);
    assert_eq!(fixture.get_or_lease(&slot, lease).await, Slot::LeaseGranted);
    let foreign = fixture.fill(&slot, LeaseId::fresh(), value("foreign")).await;
    assert_eq!(foreign, Filled::LeaseLost);
    assert_eq!(fixture.get(&slot).await, Slot::LeaseHeld);
    assert_eq!(fixture.fill(&slot, lease, value("own")).await, Filled::Stored);
    assert_eq!(fixture.fill(&slot, lease, Entry::Null).await, Filled::LeaseLost);
    assert_eq!(fixture.get(&slot).await, stored("own"));
    assert_eq!(fixture.get_or_lease(&slot, LeaseId::fresh()).await, stored("own"));
}

async fn a_lease_is_released_by_its_holder_only(fixture: StoreFixture) {
    let (slot, lease) = (fixture.slot(&1_i64), LeaseId::fresh());
    fixture.release(&slot, lease).await;
    assert_eq!(fixture.get_or_lease(&slot, lease).await, Slot::LeaseGranted);
    fixture.release(&slot, LeaseId::fresh()).await;
    assert_eq!(fixture.get(&slot).await, Slot::LeaseHeld);
    fixture.release(&slot, lease).await;
    assert_eq!(fixture.get(&slot).await, Slot::Empty);
    assert_eq!(fixture.fill(&slot, lease, Entry::Null).await, Filled::LeaseLost);
    // A release after the fill leaves the entry.
    assert_eq!(fixture.get_or_lease(&slot, lease).await, Slot::LeaseGranted);
    assert_eq!(fixture.fill(&slot, lease, value("v")).await, Filled::Stored);
    fixture.release(&slot, lease).await;
    assert_eq!(fixture.get(&slot).await, stored("v"));
}

async fn case_26_a_null_comes_back_as_a_null_with_its_end(fixture: StoreFixture) {
    for (id, until) in [0, 1, UNTIL, u64::MAX].into_iter().enumerate() {
        let (slot, lease) = (fixture.slot(&(id as i64)), LeaseId::fresh());
        assert_eq!(fixture.get_or_lease(&slot, lease).await, Slot::LeaseGranted);
        let filled = fixture.store.fill(&slot, lease, Entry::Null, until, LONG).await;
        assert_eq!(filled.unwrap(), Filled::Stored);
        assert_eq!(fixture.get(&slot).await, Slot::Null { until });
        assert_eq!(fixture.get_or_lease(&slot, LeaseId::fresh()).await, Slot::Null { until });
    }
}

async fn case_25_payloads_that_look_like_tags_come_back_as_values(fixture: StoreFixture) {
    let payloads = ["", "null", "NULL", "*", "{}", "\0", "N", "L", "M", "V", "nil"];
    for (id, payload) in payloads.into_iter().enumerate() {
        let slot = fixture.slot(&(id as i64));
        fixture.put(&slot, value(payload)).await;
        assert_eq!(fixture.get(&slot).await, stored(payload), "{payload:?}");
    }
}

async fn an_expired_lease_fills_nothing(fixture: StoreFixture) {
    let (slot, slow) = (fixture.slot(&1_i64), LeaseId::fresh());
    let leased = fixture.store.get_or_lease(&slot, slow, SHORT).await.unwrap();
    assert_eq!(leased, Slot::LeaseGranted);
    fixture.pass(SHORT).await;
    assert_eq!(fixture.get(&slot).await, Slot::Empty);
    assert_eq!(fixture.fill(&slot, slow, value("late")).await, Filled::LeaseLost);
    let next = LeaseId::fresh();
    assert_eq!(fixture.get_or_lease(&slot, next).await, Slot::LeaseGranted);
    assert_eq!(fixture.fill(&slot, slow, value("late")).await, Filled::LeaseLost);
    fixture.release(&slot, slow).await;
    assert_eq!(fixture.fill(&slot, next, value("new")).await, Filled::Stored);
    assert_eq!(fixture.get(&slot).await, stored("new"));
}

async fn entries_expire(fixture: StoreFixture) {
    for (id, entry) in [(1_i64, value("v")), (2, Entry::Null)] {
        let (slot, lease) = (fixture.slot(&id), LeaseId::fresh());
        assert_eq!(fixture.get_or_lease(&slot, lease).await, Slot::LeaseGranted);
        let filled = fixture.store.fill(&slot, lease, entry, UNTIL, SHORT).await;
        assert_eq!(filled.unwrap(), Filled::Stored);
        fixture.pass(SHORT).await;
        assert_eq!(fixture.get_or_lease(&slot, LeaseId::fresh()).await, Slot::LeaseGranted);
    }
}

async fn a_write_intent_replaces_any_entry_or_lease(fixture: StoreFixture) {
    let lease = LeaseId::fresh();
    for (id, before) in [None, Some(value("old")), Some(Entry::Null)].into_iter().enumerate() {
        let (slot, write) = (fixture.slot(&(id as i64)), WriteId::fresh());
        match before {
            Some(entry) => fixture.put(&slot, entry).await,
            None => assert_eq!(fixture.get_or_lease(&slot, lease).await, Slot::LeaseGranted),
        }
        fixture.put_intent(&slot, write, LONG).await;
        assert_eq!(fixture.get(&slot).await, Slot::WriteIntent);
        assert_eq!(fixture.get_or_lease(&slot, LeaseId::fresh()).await, Slot::WriteIntent);
        assert_eq!(fixture.fill(&slot, lease, value("stale")).await, Filled::LeaseLost);
        fixture.release(&slot, lease).await;
        assert_eq!(fixture.get(&slot).await, Slot::WriteIntent);
        fixture.clear_intent(&slot, write).await;
        assert_eq!(fixture.get(&slot).await, Slot::Empty);
        assert_eq!(fixture.fill(&slot, lease, value("stale")).await, Filled::LeaseLost);
    }
    let slot = fixture.slot(&9_i64);
    fixture.put_intent(&slot, WriteId::fresh(), LONG).await;
    assert_eq!(fixture.get(&slot).await, Slot::WriteIntent, "an empty slot takes an intent too");
}

async fn each_write_removes_only_itself_from_the_intent(fixture: StoreFixture) {
    let slot = fixture.slot(&1_i64);
    let (one, two) = (WriteId::fresh(), WriteId::fresh());
    fixture.put_intent(&slot, one, LONG).await;
    fixture.put_intent(&slot, two, LONG).await;
    fixture.clear_intent(&slot, WriteId::fresh()).await;
    fixture.clear_intent(&slot, one).await;
    assert_eq!(fixture.get(&slot).await, Slot::WriteIntent);
    fixture.clear_intent(&slot, one).await;
    assert_eq!(fixture.get(&slot).await, Slot::WriteIntent, "a repeated End is no other's End");
    fixture.clear_intent(&slot, two).await;
    assert_eq!(fixture.get(&slot).await, Slot::Empty);
}

async fn one_end_undoes_a_repeated_begin(fixture: StoreFixture) {
    let (slot, write) = (fixture.slot(&1_i64), WriteId::fresh());
    fixture.put_intent(&slot, write, LONG).await;
    fixture.put_intent(&slot, write, LONG).await;
    fixture.clear_intent(&slot, write).await;
    assert_eq!(fixture.get(&slot).await, Slot::Empty);
}

async fn an_end_that_finds_no_intent_deletes_any_entry_or_lease(fixture: StoreFixture) {
    for (id, before) in [None, Some(value("old")), Some(Entry::Null)].into_iter().enumerate() {
        let (slot, lease) = (fixture.slot(&(id as i64)), LeaseId::fresh());
        match before {
            Some(entry) => fixture.put(&slot, entry).await,
            None => assert_eq!(fixture.get_or_lease(&slot, lease).await, Slot::LeaseGranted),
        }
        fixture.clear_intent(&slot, WriteId::fresh()).await;
        assert_eq!(fixture.get(&slot).await, Slot::Empty);
        assert_eq!(fixture.fill(&slot, lease, value("stale")).await, Filled::LeaseLost);
    }
    let slot = fixture.slot(&9_i64);
    fixture.clear_intent(&slot, WriteId::fresh()).await;
    assert_eq!(fixture.get(&slot).await, Slot::Empty);
}

async fn a_write_intent_expires(fixture: StoreFixture) {
    let (slot, write) = (fixture.slot(&1_i64), WriteId::fresh());
    fixture.put_intent(&slot, write, SHORT).await;
    fixture.pass(SHORT).await;
    assert_eq!(fixture.get(&slot).await, Slot::Empty);
    // Its late End then deletes the entry that another process has stored since (rule B14).
    fixture.put(&slot, value("v")).await;
    fixture.clear_intent(&slot, write).await;
    assert_eq!(fixture.get(&slot).await, Slot::Empty);
}

async fn a_write_intent_lives_until_its_latest_deadline(fixture: StoreFixture) {
    let (long, short) = (WriteId::fresh(), WriteId::fresh());
    for (id, order) in
        [[(long, LONG), (short, SHORT)], [(short, SHORT), (long, LONG)]].into_iter().enumerate()
    {
        let slot = fixture.slot(&(id as i64));
        for (write, ttl) in order {
            fixture.put_intent(&slot, write, ttl).await;
        }
        fixture.pass(SHORT).await;
        assert_eq!(fixture.get(&slot).await, Slot::WriteIntent);
        // The short one has expired, so that the long one's End is the last.
        fixture.clear_intent(&slot, long).await;
        assert_eq!(fixture.get(&slot).await, Slot::Empty);
    }
}

async fn the_end_of_the_longest_write_leaves_the_others_their_own_deadlines(fixture: StoreFixture) {
    let (slot, long, short) = (fixture.slot(&1_i64), WriteId::fresh(), WriteId::fresh());
    fixture.put_intent(&slot, long, LONG).await;
    fixture.put_intent(&slot, short, LONG).await;
    // A write that is put again takes the new deadline, even an earlier one.
    fixture.put_intent(&slot, short, SHORT).await;
    fixture.clear_intent(&slot, long).await;
    fixture.pass(SHORT).await;
    assert_eq!(fixture.get(&slot).await, Slot::Empty);
}

/// Rule B9: a key with very many unfinished writes costs no more than one with a few.
async fn of_many_open_writes_some_are_told_apart_and_the_rest_keep_their_latest_deadline(
    fixture: StoreFixture,
) {
    let slot = fixture.slot(&1_i64);
    let told_apart: Vec<_> = (0..MAX_INTENT_WRITES).map(|_| WriteId::fresh()).collect();
    for write in &told_apart {
        fixture.put_intent(&slot, *write, LONG).await;
    }
    let rest: Vec<_> = (0..200).map(|_| WriteId::fresh()).collect();
    for write in &rest {
        fixture.put_intent(&slot, *write, SHORT).await;
    }
    // An End of one of the rest, or its repetition, ends no other.
    for write in rest.iter().chain(&rest) {
        fixture.clear_intent(&slot, *write).await;
        assert_eq!(fixture.get(&slot).await, Slot::WriteIntent);
    }
    for write in &told_apart[1..] {
        fixture.clear_intent(&slot, *write).await;
    }
    assert_eq!(fixture.get(&slot).await, Slot::WriteIntent, "one is open, and the rest");
    fixture.pass(SHORT).await;
    assert_eq!(fixture.get(&slot).await, Slot::WriteIntent, "one is open");
    fixture.clear_intent(&slot, told_apart[0]).await;
    assert_eq!(fixture.get(&slot).await, Slot::Empty);

    for write in told_apart.iter().chain(&rest) {
        fixture.put_intent(&slot, *write, SHORT).await;
    }
    for write in &told_apart {
        fixture.clear_intent(&slot, *write).await;
    }
    assert_eq!(fixture.get(&slot).await, Slot::WriteIntent, "the rest is open");
    fixture.pass(SHORT).await;
    assert_eq!(fixture.get(&slot).await, Slot::Empty);
}

/// Rules B10, B14 and B16: builds with different schemas share a key's slot.
async fn an_entry_of_another_schema_is_replaced_under_a_lease_and_ended_by_a_write(
    fixture: StoreFixture,
) {
    let old = fixture.slot(&1_i64);
    let new = SlotKey::new(Arc::from(old.prefix()), old.schema() + 1, old.key().clone());
    for entry in [value("old"), Entry::Null] {
        fixture.put(&old, entry).await;
        assert_eq!(fixture.get(&new).await, Slot::Empty);
        let (first, second) = (LeaseId::fresh(), LeaseId::fresh());
        assert_eq!(fixture.get_or_lease(&new, first).await, Slot::LeaseGranted);
        assert_eq!(fixture.get_or_lease(&old, second).await, Slot::LeaseHeld);
        assert_eq!(fixture.fill(&new, first, value("new")).await, Filled::Stored);
        assert_eq!(fixture.get(&new).await, stored("new"));
        assert_eq!(fixture.get(&old).await, Slot::Empty);
        // A write through either build ends what the other one has cached.
        let write = WriteId::fresh();
        fixture.put_intent(&old, write, LONG).await;
        assert_eq!(fixture.get(&new).await, Slot::WriteIntent);
        fixture.clear_intent(&old, write).await;
        assert_eq!(fixture.get(&new).await, Slot::Empty);
    }
    // Many at once, too.
    let other = fixture.slot(&2_i64);
    fixture.put(&old, value("old")).await;
    fixture.put(&other, value("other")).await;
    let lease = SlotOp::GetOrLease { lease: LeaseId::fresh(), ttl: LONG };
    let calls = vec![(new.clone(), lease.clone()), (other, lease)];
    let replies: Vec<_> =
        fixture.store.call_many(calls).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(replies, [SlotReply::Slot(Slot::LeaseGranted), SlotReply::Slot(stored("other"))]);
}

async fn an_old_lease_does_not_fill_after_the_intent_was_evicted(fixture: StoreFixture) {
    let (slot, lease, write) = (fixture.slot(&1_i64), LeaseId::fresh(), WriteId::fresh());
    assert_eq!(fixture.get_or_lease(&slot, lease).await, Slot::LeaseGranted);
    fixture.put_intent(&slot, write, LONG).await;
    fixture.evict(&1_i64);
    assert_eq!(fixture.fill(&slot, lease, value("stale")).await, Filled::LeaseLost);
    // Another process may lease the slot meanwhile; the End removes that lease too.
    let other = LeaseId::fresh();
    assert_eq!(fixture.get_or_lease(&slot, other).await, Slot::LeaseGranted);
    fixture.clear_intent(&slot, write).await;
    assert_eq!(fixture.fill(&slot, other, value("stale")).await, Filled::LeaseLost);
    assert_eq!(fixture.get(&slot).await, Slot::Empty);
}

/// Fills each key's slot with the key itself and checks that each key then finds itself.
async fn keys_apart<K: Key>(fixture: &StoreFixture, keys: &[K]) {
    let bytes = |key: &K| Bytes::copy_from_slice(KeyBytes::of(key).as_slice());
    for key in keys {
        fixture.put(&fixture.slot(key), Entry::Value(bytes(key))).await;
    }
    for key in keys {
        let stored = Slot::Value { payload: bytes(key), until: UNTIL };
        assert_eq!(fixture.get(&fixture.slot(key)).await, stored);
    }
}

async fn case_46_long_keys_keep_slots_of_their_own(fixture: StoreFixture) {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for length in [199, 200, 201, 300, 8_192, 1 << 20] {
        for last in [0_u8, 1, 255] {
            let mut key = vec![b'x'; length - 1];
            key.push(last);
            keys.push(key);
        }
    }
    keys_apart(&fixture, &keys).await;
}

async fn case_46_keys_of_any_bytes_keep_slots_of_their_own(fixture: StoreFixture) {
    let keys: [&[u8]; 14] = [
        b"",
        b"\0",
        b"\0\0",
        b"a",
        b"a\0",
        b"a\0b",
        b"a:b",
        b"a b",
        b"a\r\nb",
        b"{a}",
        b"*",
        b"\xff",
        b"\xc0\x80",
        b"k",
    ];
    keys_apart(&fixture, &keys.map(<[u8]>::to_vec)).await;
}

async fn slots_of_different_prefixes_are_apart(fixture: StoreFixture) {
    let slot = fixture.slot(&1_i64);
    fixture.put(&slot, value("v")).await;
    let mut longer = fixture.prefix.to_string();
    longer.push_str("k:");
    let other = SlotKey::new(longer.into(), 1, slot.key().clone());
    assert_eq!(fixture.get(&other).await, Slot::Empty);
    assert_eq!(fixture.get_or_lease(&other, LeaseId::fresh()).await, Slot::LeaseGranted);
    assert_eq!(fixture.get(&slot).await, stored("v"));
}

/// A call of each kind, on one slot and on several, with the replies that the rules give.
async fn many_operations_are_answered_in_their_order(fixture: StoreFixture) {
    let slots = [1_i64, 2, 3].map(|id| fixture.slot(&id));
    let (lease, other, write) = (LeaseId::fresh(), LeaseId::fresh(), WriteId::fresh());
    let fill = |lease, entry| SlotOp::Fill { lease, entry, until: UNTIL, ttl: LONG };
    let get_or_lease = |lease| SlotOp::GetOrLease { lease, ttl: LONG };
    let put_intent = SlotOp::PutIntent { write, ttl: LONG };
    let steps = [
        (0, SlotOp::Get, SlotReply::Slot(Slot::Empty)),
        (0, get_or_lease(lease), SlotReply::Slot(Slot::LeaseGranted)),
        (0, get_or_lease(other), SlotReply::Slot(Slot::LeaseHeld)),
        (1, get_or_lease(other), SlotReply::Slot(Slot::LeaseGranted)),
        (0, fill(other, value("foreign")), SlotReply::Filled(Filled::LeaseLost)),
        (0, fill(lease, value("own")), SlotReply::Filled(Filled::Stored)),
        (0, SlotOp::Get, SlotReply::Slot(stored("own"))),
        (1, SlotOp::Release { lease: other }, SlotReply::Done),
        (1, SlotOp::Get, SlotReply::Slot(Slot::Empty)),
        (2, put_intent.clone(), SlotReply::Done),
        (0, put_intent, SlotReply::Done),
        (0, SlotOp::Get, SlotReply::Slot(Slot::WriteIntent)),
        (2, get_or_lease(lease), SlotReply::Slot(Slot::WriteIntent)),
        (0, SlotOp::ClearIntent { write }, SlotReply::Done),
        (0, SlotOp::Get, SlotReply::Slot(Slot::Empty)),
        (2, SlotOp::Get, SlotReply::Slot(Slot::WriteIntent)),
    ];
    let calls = steps.iter().map(|(at, op, _)| (slots[*at].clone(), op.clone())).collect();
    let replies = fixture.store.call_many(calls).await;
    assert_eq!(replies.len(), steps.len());
    for (reply, (at, op, expected)) in replies.into_iter().zip(steps) {
        assert_eq!(reply.unwrap(), expected, "{op:?} of slot {at}");
    }
    assert_eq!(fixture.store.call_many(Vec::new()).await.len(), 0);
}

async fn an_arc_of_a_store_is_the_same_store(fixture: StoreFixture) {
    let (slot, lease) = (fixture.slot(&1_i64), LeaseId::fresh());
    let arc: Arc<Arc<dyn Store>> = Arc::new(Arc::clone(&fixture.store));
    arc.prepare().await.unwrap();
    assert_eq!(arc.endpoint(), fixture.store.endpoint());
    let calls = vec![(slot.clone(), SlotOp::GetOrLease { lease, ttl: LONG })];
    let granted = SlotReply::Slot(Slot::LeaseGranted);
    assert_eq!(arc.call_many(calls).await.remove(0).unwrap(), granted);
    assert_eq!(fixture.fill(&slot, lease, value("v")).await, Filled::Stored);
    assert_eq!(arc.call(&slot, SlotOp::Get).await.unwrap(), SlotReply::Slot(stored("v")));
    assert_eq!(arc.clear(&fixture.prefix).await.unwrap(), 1);
    assert_eq!(fixture.get(&slot).await, Slot::Empty);
}

async fn clearing_removes_entries_and_leases_and_leaves_write_intents(fixture: StoreFixture) {
    let (lease, write) = (LeaseId::fresh(), WriteId::fresh());
    let [value_slot, null_slot, leased, with_intent] = [1_i64, 2, 3, 4].map(|id| fixture.slot(&id));
    let long = fixture.slot(&vec![b'x'; 300]);
    fixture.put(&value_slot, value("v")).await;
    fixture.put(&null_slot, Entry::Null).await;
    fixture.put(&long, value("of a long key")).await;
    assert_eq!(fixture.get_or_lease(&leased, lease).await, Slot::LeaseGranted);
    fixture.put_intent(&with_intent, write, LONG).await;

    assert_eq!(fixture.store.clear(&fixture.prefix).await.unwrap(), 4);
    for slot in [&value_slot, &null_slot, &long, &leased] {
        assert_eq!(fixture.get(slot).await, Slot::Empty);
    }
    assert_eq!(fixture.fill(&leased, lease, value("stale")).await, Filled::LeaseLost);
    assert_eq!(fixture.get(&with_intent).await, Slot::WriteIntent);
    fixture.clear_intent(&with_intent, write).await;
    assert_eq!(fixture.get(&with_intent).await, Slot::Empty);
    assert_eq!(fixture.store.clear(&fixture.prefix).await.unwrap(), 0);
}

async fn clearing_leaves_other_prefixes(fixture: StoreFixture) {
    // Read as patterns, each of these would match one of the others, or not itself.
    let names = ["*", "?", "[ab]", "[^a]", "a", "b", "\\a", "\\", "[", "]", "a-b", "{a,b}", "é"];
    let slots = names.map(|name| {
        let prefix: Arc<str> = format!("{}{name}:", fixture.prefix).into();
        SlotKey::new(prefix, 1, KeyBytes::of(&1_i64))
    });
    for slot in &slots {
        fixture.put(slot, value("v")).await;
    }
    for cleared in 0..slots.len() {
        let removed = fixture.store.clear(slots[cleared].prefix()).await.unwrap();
        assert_eq!(removed, 1, "{:?}", slots[cleared]);
        for (at, slot) in slots.iter().enumerate() {
            let expected = if at <= cleared { Slot::Empty } else { stored("v") };
            assert_eq!(fixture.get(slot).await, expected, "{slot:?}");
        }
    }
}

async fn clearing_takes_as_many_steps_as_there_are_entries(fixture: StoreFixture) {
    let slots: Vec<SlotKey> = (0..1_200_i64).map(|id| fixture.slot(&id)).collect();
    let lease = LeaseId::fresh();
    let on_each = |op: SlotOp| slots.iter().map(|slot| (slot.clone(), op.clone())).collect();
    let leased = fixture.store.call_many(on_each(SlotOp::GetOrLease { lease, ttl: LONG })).await;
    assert!(leased.into_iter().all(|reply| reply.is_ok()));
    let fill = SlotOp::Fill { lease, entry: value("v"), until: UNTIL, ttl: LONG };
    let filled = fixture.store.call_many(on_each(fill)).await;
    assert!(filled.into_iter().all(|reply| reply.unwrap() == SlotReply::Filled(Filled::Stored)));
    assert_eq!(fixture.store.clear(&fixture.prefix).await.unwrap(), 1_200);
    for reply in fixture.store.call_many(on_each(SlotOp::Get)).await {
        assert_eq!(reply.unwrap(), SlotReply::Slot(Slot::Empty));
    }
}

/// An operation on one slot by one of three callers.
#[derive(Clone, Debug)]
enum Op {
    GetOrLease(usize),
    Fill(usize, Option<Vec<u8>>),
    Release(usize),
    PutIntent(usize),
    ClearIntent(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let caller = 0..3_usize;
    let payload = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40));
    let op = prop_oneof![
        caller.clone().prop_map(Op::GetOrLease),
        (caller.clone(), payload).prop_map(|(caller, payload)| Op::Fill(caller, payload)),
        caller.clone().prop_map(Op::Release),
        caller.clone().prop_map(Op::PutIntent),
        caller.prop_map(Op::ClearIntent),
    ];
    proptest::collection::vec(op, 1..25)
}

/// The slot's state by the rules.
#[derive(Clone, Debug, PartialEq)]
enum Expected {
    Empty,
    Lease(usize),
    WriteIntent(Vec<usize>),
    Entry(Option<Vec<u8>>),
}

/// Any sequence of operations leaves the state that the rules give. Each store is compared with
/// one model, and so with the others.
fn any_sequence_of_operations_follows_the_rules(make: impl AsyncFn() -> StoreFixture, cases: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fixture = runtime.block_on(make());
    let mut runner = TestRunner::new(Config::with_cases(cases));
    runner
        .run(&ops(), |ops| {
            let slot = fixture.slot(&WriteId::fresh().to_hex());
            let ids = [(); 3].map(|()| (LeaseId::fresh(), WriteId::fresh()));
            runtime.block_on(async {
                let mut expected = Expected::Empty;
                for op in ops {
                    follow(&fixture, &slot, &ids, &mut expected, op).await;
                    let found = fixture.get(&slot).await;
                    let wanted = shown(&expected);
                    prop_assert_eq!(found, wanted);
                }
                Ok(())
            })
        })
        .unwrap();
}

fn shown(expected: &Expected) -> Slot {
    match expected {
        Expected::Empty => Slot::Empty,
        Expected::Lease(_) => Slot::LeaseHeld,
        Expected::WriteIntent(_) => Slot::WriteIntent,
        Expected::Entry(None) => Slot::Null { until: UNTIL },
        Expected::Entry(Some(payload)) => {
            Slot::Value { payload: Bytes::from(payload.clone()), until: UNTIL }
        }
    }
}

async fn follow(
    fixture: &StoreFixture,
    slot: &SlotKey,
    ids: &[(LeaseId, WriteId); 3],
    now: &mut Expected,
    op: Op,
) {
    match op {
        Op::GetOrLease(caller) => {
            let wanted = match &now {
                Expected::Empty => Slot::LeaseGranted,
                other => shown(other),
            };
            assert_eq!(fixture.get_or_lease(slot, ids[caller].0).await, wanted);
            if *now == Expected::Empty {
                *now = Expected::Lease(caller);
            }
        }
        Op::Fill(caller, payload) => {
            let own = *now == Expected::Lease(caller);
            let entry = payload.clone().map_or(Entry::Null, |payload| Entry::Value(payload.into()));
            let wanted = if own { Filled::Stored } else { Filled::LeaseLost };
            assert_eq!(fixture.fill(slot, ids[caller].0, entry).await, wanted);
            if own {
                *now = Expected::Entry(payload);
            }
        }
        Op::Release(caller) => {
            fixture.release(slot, ids[caller].0).await;
            if *now == Expected::Lease(caller) {
                *now = Expected::Empty;
            }
        }
        Op::PutIntent(caller) => {
            fixture.put_intent(slot, ids[caller].1, LONG).await;
            let mut writers = match now {
                Expected::WriteIntent(writers) => writers.clone(),
                _ => Vec::new(),
            };
            writers.retain(|writer| *writer != caller);
            writers.push(caller);
            *now = Expected::WriteIntent(writers);
        }
        Op::ClearIntent(caller) => {
            fixture.clear_intent(slot, ids[caller].1).await;
            let mut writers = match now {
                Expected::WriteIntent(writers) => writers.clone(),
                _ => Vec::new(),
            };
            writers.retain(|writer| *writer != caller);
            *now =
                if writers.is_empty() { Expected::Empty } else { Expected::WriteIntent(writers) };
        }
    }
}

/// Random bytes as payload and as key.
fn case_25_any_payload_comes_back_as_a_value(make: impl AsyncFn() -> StoreFixture, cases: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fixture = runtime.block_on(make());
    let bytes = |most| proptest::collection::vec(any::<u8>(), 0..most);
    let strategy = (bytes(300), bytes(2_000), any::<u64>());
    let mut runner = TestRunner::new(Config::with_cases(cases));
    runner
        .run(&strategy, |(key, payload, until)| {
            let (slot, lease) = (fixture.slot(&(key, LeaseId::fresh().to_hex())), LeaseId::fresh());
            let payload = Bytes::from(payload);
            runtime.block_on(async {
                assert_eq!(fixture.get_or_lease(&slot, lease).await, Slot::LeaseGranted);
                let entry = Entry::Value(payload.clone());
                let filled = fixture.store.fill(&slot, lease, entry, until, LONG).await;
                prop_assert_eq!(filled.unwrap(), Filled::Stored);
                prop_assert_eq!(fixture.get(&slot).await, Slot::Value { payload, until });
                Ok(())
            })
        })
        .unwrap();
}

macro_rules! for_every_store {
    ($($name:ident),* $(,)?) => {
        for_every_store!(@ memory, memory, 256, $($name),*);
        #[cfg(feature = "redis")]
        for_every_store!(@ redis, redis, 100, $($name),*);
        #[cfg(feature = "redis")]
        for_every_store!(@ redis_resp3, redis_resp3, 20, $($name),*);
        #[cfg(feature = "redis")]
        for_every_store!(@ redis_unix, redis_unix, 20, $($name),*);
    };
    (@ $module:ident, $fixture:ident, $cases:literal, $($name:ident),*) => {
        mod $module {
            use super::super::store_fixture::StoreFixture;
            $(
                #[tokio::test]
                async fn $name() {
                    super::$name(StoreFixture::$fixture()).await;
                }
            )*

            #[test]
            fn case_25_any_payload_comes_back_as_a_value() {
                super::case_25_any_payload_comes_back_as_a_value(async || StoreFixture::$fixture(), $cases);
            }

            #[test]
            fn any_sequence_of_operations_follows_the_rules() {
                super::any_sequence_of_operations_follows_the_rules(async || StoreFixture::$fixture(), $cases);
            }
        }
    };
}

for_every_store!(
    an_empty_slot_is_leased_to_the_first_caller_only,
    only_the_holder_of_a_lease_fills_and_only_once,
    a_lease_is_released_by_its_holder_only,
    case_26_a_null_comes_back_as_a_null_with_its_end,
    case_25_payloads_that_look_like_tags_come_back_as_values,
    an_expired_lease_fills_nothing,
    entries_expire,
    a_write_intent_replaces_any_entry_or_lease,
    each_write_removes_only_itself_from_the_intent,
    one_end_undoes_a_repeated_begin,
    an_end_that_finds_no_intent_deletes_any_entry_or_lease,
    a_write_intent_expires,
    a_write_intent_lives_until_its_latest_deadline,
    the_end_of_the_longest_write_leaves_the_others_their_own_deadlines,
    of_many_open_writes_some_are_told_apart_and_the_rest_keep_their_latest_deadline,
    an_entry_of_another_schema_is_replaced_under_a_lease_and_ended_by_a_write,
    an_old_lease_does_not_fill_after_the_intent_was_evicted,
    case_46_long_keys_keep_slots_of_their_own,
    case_46_keys_of_any_bytes_keep_slots_of_their_own,
    slots_of_different_prefixes_are_apart,
    many_operations_are_answered_in_their_order,
    an_arc_of_a_store_is_the_same_store,
    clearing_removes_entries_and_leases_and_leaves_write_intents,
    clearing_leaves_other_prefixes,
    clearing_takes_as_many_steps_as_there_are_entries,
);
