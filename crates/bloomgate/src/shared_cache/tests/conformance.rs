//! The rules of section B of the protocol, for every store.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::store_fixture::{LONG, SHORT, StoreFixture};
use crate::key::{Key, KeyBytes};
use crate::ports::{Entry, Filled, InstanceId, LeaseId, Slot, SlotKey, WriteId};

const UNTIL: u64 = 1_900_000_000_123;

fn value(payload: &'static str) -> Entry {
    Entry::Value(Bytes::from_static(payload.as_bytes()))
}

fn stands(payload: &'static str) -> Slot {
    Slot::Value { payload: Bytes::from_static(payload.as_bytes()), until: UNTIL }
}

impl StoreFixture {
    async fn get(&self, slot: &SlotKey) -> Slot {
        self.store.get(slot).await.unwrap()
    }

    async fn ask(&self, slot: &SlotKey, lease: LeaseId) -> Slot {
        self.store.get_or_lease(slot, lease, LONG).await.unwrap()
    }

    async fn fill(&self, slot: &SlotKey, lease: LeaseId, entry: Entry) -> Filled {
        let filled = self.store.fill(slot, lease, entry, UNTIL, LONG).await;
        filled.unwrap()
    }

    /// Puts an entry in, through a lease.
    async fn put(&self, slot: &SlotKey, entry: Entry) {
        let lease = LeaseId::fresh();
        assert_eq!(self.ask(slot, lease).await, Slot::LeaseGranted);
        assert_eq!(self.fill(slot, lease, entry).await, Filled::Stored);
    }

    async fn put_intent(&self, slot: &SlotKey, write: WriteId, lives: Duration) {
        self.store.put_intent(slot, write, lives).await.unwrap();
    }

    async fn clear_intent(&self, slot: &SlotKey, write: WriteId) {
        self.store.clear_intent(slot, write).await.unwrap();
    }

    async fn release(&self, slot: &SlotKey, lease: LeaseId) {
        self.store.release(slot, lease).await.unwrap();
    }
}

async fn an_empty_slot_is_leased_to_the_first_asker_alone(on: StoreFixture) {
    let (slot, first) = (on.slot(&1_i64), LeaseId::fresh());
    on.store.prepare().await.unwrap();
    assert_eq!(on.get(&slot).await, Slot::Empty);
    assert_eq!(on.ask(&slot, first).await, Slot::LeaseGranted);
    assert_eq!(on.ask(&slot, LeaseId::fresh()).await, Slot::LeaseHeld);
    assert_eq!(on.ask(&slot, first).await, Slot::LeaseHeld);
    assert_eq!(on.get(&slot).await, Slot::LeaseHeld);
    assert_eq!(on.get(&on.slot(&2_i64)).await, Slot::Empty);
}

async fn only_the_holder_of_a_lease_fills_and_only_once(on: StoreFixture) {
    let (slot, lease) = (on.slot(&1_i64), LeaseId::fresh());
    let early = on.fill(&slot, lease, value("early")).await;
    assert_eq!(early, Filled::LeaseLost);
    assert_eq!(on.get(&slot).await, Slot::Empty);
    assert_eq!(on.ask(&slot, lease).await, Slot::LeaseGranted);
    let foreign = on.fill(&slot, LeaseId::fresh(), value("foreign")).await;
    assert_eq!(foreign, Filled::LeaseLost);
    assert_eq!(on.get(&slot).await, Slot::LeaseHeld);
    assert_eq!(on.fill(&slot, lease, value("own")).await, Filled::Stored);
    assert_eq!(on.fill(&slot, lease, Entry::Null).await, Filled::LeaseLost);
    assert_eq!(on.get(&slot).await, stands("own"));
    assert_eq!(on.ask(&slot, LeaseId::fresh()).await, stands("own"));
}

async fn a_lease_is_given_back_by_its_holder_alone(on: StoreFixture) {
    let (slot, lease) = (on.slot(&1_i64), LeaseId::fresh());
    on.release(&slot, lease).await;
    assert_eq!(on.ask(&slot, lease).await, Slot::LeaseGranted);
    on.release(&slot, LeaseId::fresh()).await;
    assert_eq!(on.get(&slot).await, Slot::LeaseHeld);
    on.release(&slot, lease).await;
    assert_eq!(on.get(&slot).await, Slot::Empty);
    assert_eq!(on.fill(&slot, lease, Entry::Null).await, Filled::LeaseLost);
    // What was filled under a lease doesn't go with it.
    assert_eq!(on.ask(&slot, lease).await, Slot::LeaseGranted);
    assert_eq!(on.fill(&slot, lease, value("v")).await, Filled::Stored);
    on.release(&slot, lease).await;
    assert_eq!(on.get(&slot).await, stands("v"));
}

async fn case_26_a_null_comes_back_as_a_null_with_its_end(on: StoreFixture) {
    for (id, until) in [0, 1, UNTIL, u64::MAX].into_iter().enumerate() {
        let (slot, lease) = (on.slot(&(id as i64)), LeaseId::fresh());
        assert_eq!(on.ask(&slot, lease).await, Slot::LeaseGranted);
        let filled = on.store.fill(&slot, lease, Entry::Null, until, LONG).await;
        assert_eq!(filled.unwrap(), Filled::Stored);
        assert_eq!(on.get(&slot).await, Slot::Null { until });
        assert_eq!(on.ask(&slot, LeaseId::fresh()).await, Slot::Null { until });
    }
}

async fn case_25_payloads_that_look_like_markers_come_back_as_values(on: StoreFixture) {
    let payloads = ["", "null", "NULL", "*", "{}", "\0", "N", "L", "M", "V", "nil"];
    for (id, payload) in payloads.into_iter().enumerate() {
        let slot = on.slot(&(id as i64));
        on.put(&slot, value(payload)).await;
        assert_eq!(on.get(&slot).await, stands(payload), "{payload:?}");
    }
}

async fn a_lease_runs_out_and_its_holder_fills_no_more(on: StoreFixture) {
    let (slot, slow) = (on.slot(&1_i64), LeaseId::fresh());
    let leased = on.store.get_or_lease(&slot, slow, SHORT).await.unwrap();
    assert_eq!(leased, Slot::LeaseGranted);
    on.pass(SHORT).await;
    assert_eq!(on.get(&slot).await, Slot::Empty);
    assert_eq!(on.fill(&slot, slow, value("late")).await, Filled::LeaseLost);
    let next = LeaseId::fresh();
    assert_eq!(on.ask(&slot, next).await, Slot::LeaseGranted);
    assert_eq!(on.fill(&slot, slow, value("late")).await, Filled::LeaseLost);
    on.release(&slot, slow).await;
    assert_eq!(on.fill(&slot, next, value("new")).await, Filled::Stored);
    assert_eq!(on.get(&slot).await, stands("new"));
}

async fn entries_expire(on: StoreFixture) {
    for (id, entry) in [(1_i64, value("v")), (2, Entry::Null)] {
        let (slot, lease) = (on.slot(&id), LeaseId::fresh());
        assert_eq!(on.ask(&slot, lease).await, Slot::LeaseGranted);
        let filled = on.store.fill(&slot, lease, entry, UNTIL, SHORT).await;
        assert_eq!(filled.unwrap(), Filled::Stored);
        on.pass(SHORT).await;
        assert_eq!(on.ask(&slot, LeaseId::fresh()).await, Slot::LeaseGranted);
    }
}

async fn a_mark_takes_the_place_of_whatever_stands(on: StoreFixture) {
    let lease = LeaseId::fresh();
    for (id, before) in [None, Some(value("old")), Some(Entry::Null)].into_iter().enumerate() {
        let (slot, write) = (on.slot(&(id as i64)), WriteId::fresh());
        match before {
            Some(entry) => on.put(&slot, entry).await,
            None => assert_eq!(on.ask(&slot, lease).await, Slot::LeaseGranted),
        }
        on.put_intent(&slot, write, LONG).await;
        assert_eq!(on.get(&slot).await, Slot::WriteIntent);
        assert_eq!(on.ask(&slot, LeaseId::fresh()).await, Slot::WriteIntent);
        assert_eq!(on.fill(&slot, lease, value("stale")).await, Filled::LeaseLost);
        on.release(&slot, lease).await;
        assert_eq!(on.get(&slot).await, Slot::WriteIntent);
        on.clear_intent(&slot, write).await;
        assert_eq!(on.get(&slot).await, Slot::Empty);
        assert_eq!(on.fill(&slot, lease, value("stale")).await, Filled::LeaseLost);
    }
    let slot = on.slot(&9_i64);
    on.put_intent(&slot, WriteId::fresh(), LONG).await;
    assert_eq!(on.get(&slot).await, Slot::WriteIntent, "an empty slot is with_intent too");
}

async fn each_writer_removes_its_own_id_alone(on: StoreFixture) {
    let slot = on.slot(&1_i64);
    let (one, two) = (WriteId::fresh(), WriteId::fresh());
    on.put_intent(&slot, one, LONG).await;
    on.put_intent(&slot, two, LONG).await;
    on.clear_intent(&slot, WriteId::fresh()).await;
    on.clear_intent(&slot, one).await;
    assert_eq!(on.get(&slot).await, Slot::WriteIntent);
    on.clear_intent(&slot, one).await;
    assert_eq!(on.get(&slot).await, Slot::WriteIntent, "a repeated End is no other's End");
    on.clear_intent(&slot, two).await;
    assert_eq!(on.get(&slot).await, Slot::Empty);
}

async fn one_end_undoes_a_repeated_begin(on: StoreFixture) {
    let (slot, write) = (on.slot(&1_i64), WriteId::fresh());
    on.put_intent(&slot, write, LONG).await;
    on.put_intent(&slot, write, LONG).await;
    on.clear_intent(&slot, write).await;
    assert_eq!(on.get(&slot).await, Slot::Empty);
}

async fn an_end_that_finds_no_mark_deletes_what_stands(on: StoreFixture) {
    for (id, before) in [None, Some(value("old")), Some(Entry::Null)].into_iter().enumerate() {
        let (slot, lease) = (on.slot(&(id as i64)), LeaseId::fresh());
        match before {
            Some(entry) => on.put(&slot, entry).await,
            None => assert_eq!(on.ask(&slot, lease).await, Slot::LeaseGranted),
        }
        on.clear_intent(&slot, WriteId::fresh()).await;
        assert_eq!(on.get(&slot).await, Slot::Empty);
        assert_eq!(on.fill(&slot, lease, value("stale")).await, Filled::LeaseLost);
    }
    let slot = on.slot(&9_i64);
    on.clear_intent(&slot, WriteId::fresh()).await;
    assert_eq!(on.get(&slot).await, Slot::Empty);
}

async fn a_mark_runs_out(on: StoreFixture) {
    let (slot, write) = (on.slot(&1_i64), WriteId::fresh());
    on.put_intent(&slot, write, SHORT).await;
    on.pass(SHORT).await;
    assert_eq!(on.get(&slot).await, Slot::Empty);
    // Its late End then deletes what another process has put there since (rule B14).
    on.put(&slot, value("v")).await;
    on.clear_intent(&slot, write).await;
    assert_eq!(on.get(&slot).await, Slot::Empty);
}

async fn a_mark_lives_until_its_latest_deadline(on: StoreFixture) {
    let (long, short) = (WriteId::fresh(), WriteId::fresh());
    for (id, order) in
        [[(long, LONG), (short, SHORT)], [(short, SHORT), (long, LONG)]].into_iter().enumerate()
    {
        let slot = on.slot(&(id as i64));
        for (write, lives) in order {
            on.put_intent(&slot, write, lives).await;
        }
        on.pass(SHORT).await;
        assert_eq!(on.get(&slot).await, Slot::WriteIntent);
        // The short one is over, so that the long one's End is the last.
        on.clear_intent(&slot, long).await;
        assert_eq!(on.get(&slot).await, Slot::Empty);
    }
}

async fn the_end_of_the_longest_writer_leaves_the_others_their_own_deadlines(on: StoreFixture) {
    let (slot, long, short) = (on.slot(&1_i64), WriteId::fresh(), WriteId::fresh());
    on.put_intent(&slot, long, LONG).await;
    on.put_intent(&slot, short, LONG).await;
    // A intent that is renewed takes the new deadline, also a nearer one.
    on.put_intent(&slot, short, SHORT).await;
    on.clear_intent(&slot, long).await;
    on.pass(SHORT).await;
    assert_eq!(on.get(&slot).await, Slot::Empty);
}

async fn an_old_lease_does_not_fill_after_its_mark_was_evicted(on: StoreFixture) {
    let (slot, lease, write) = (on.slot(&1_i64), LeaseId::fresh(), WriteId::fresh());
    assert_eq!(on.ask(&slot, lease).await, Slot::LeaseGranted);
    on.put_intent(&slot, write, LONG).await;
    on.evict(&1_i64);
    assert_eq!(on.fill(&slot, lease, value("stale")).await, Filled::LeaseLost);
    // Another process may lease the slot meanwhile; the End takes that away too.
    let other = LeaseId::fresh();
    assert_eq!(on.ask(&slot, other).await, Slot::LeaseGranted);
    on.clear_intent(&slot, write).await;
    assert_eq!(on.fill(&slot, other, value("stale")).await, Filled::LeaseLost);
    assert_eq!(on.get(&slot).await, Slot::Empty);
}

async fn members_see_each_others_beats_until_they_leave_or_fall_silent(on: StoreFixture) {
    let space = on.prefix.trim_matches(':').to_owned();
    let (one, two) = (InstanceId::fresh(), InstanceId::fresh());
    let heartbeat = async |member| on.store.heartbeat(&space, member, LONG).await.unwrap();
    assert_eq!(heartbeat(one).await, []);
    assert_eq!(heartbeat(one).await, []);
    let seen = heartbeat(two).await;
    assert_eq!((seen.len(), &seen[0].member), (1, &one.to_hex()));
    assert_eq!(seen[0].heartbeats, 2);
    assert_eq!(heartbeat(one).await[0].heartbeats, 1);
    assert_eq!(heartbeat(two).await[0].heartbeats, 3);
    let elsewhere = on.store.heartbeat("elsewhere", InstanceId::fresh(), LONG).await;
    assert!(elsewhere.unwrap().iter().all(|other| other.member != one.to_hex()));
    on.store.leave(&space, one).await.unwrap();
    assert_eq!(heartbeat(two).await, []);
    on.store.leave(&space, one).await.unwrap();
    // One that comes back counts from 1 again.
    assert_eq!(heartbeat(one).await.len(), 1);
    assert_eq!(heartbeat(two).await[0].heartbeats, 1);
    on.pass(SHORT).await;
    let seen = on.store.heartbeat(&space, two, SHORT / 2).await;
    assert_eq!(seen.unwrap(), []);
}

/// Fills each key's slot with the key itself, and then finds each its own.
async fn keys_apart<K: Key>(on: &StoreFixture, keys: &[K]) {
    let bytes = |key: &K| Bytes::copy_from_slice(KeyBytes::of(key).as_slice());
    for key in keys {
        on.put(&on.slot(key), Entry::Value(bytes(key))).await;
    }
    for key in keys {
        let stands = Slot::Value { payload: bytes(key), until: UNTIL };
        assert_eq!(on.get(&on.slot(key)).await, stands);
    }
}

async fn case_46_long_keys_keep_slots_of_their_own(on: StoreFixture) {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for length in [199, 200, 201, 300, 8_192, 1 << 20] {
        for last in [0_u8, 1, 255] {
            let mut key = vec![b'x'; length - 1];
            key.push(last);
            keys.push(key);
        }
    }
    keys_apart(&on, &keys).await;
}

async fn case_46_keys_of_any_bytes_keep_slots_of_their_own(on: StoreFixture) {
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
    keys_apart(&on, &keys.map(<[u8]>::to_vec)).await;
}

async fn slots_of_different_prefixes_are_apart(on: StoreFixture) {
    let slot = on.slot(&1_i64);
    on.put(&slot, value("v")).await;
    let mut longer = on.prefix.to_string();
    longer.push_str("k:");
    let other = SlotKey::new(longer.into(), slot.key().clone());
    assert_eq!(on.get(&other).await, Slot::Empty);
    assert_eq!(on.ask(&other, LeaseId::fresh()).await, Slot::LeaseGranted);
    assert_eq!(on.get(&slot).await, stands("v"));
}

/// One step that somebody takes at one slot.
#[derive(Clone, Debug)]
enum Step {
    Ask(usize),
    Fill(usize, Option<Vec<u8>>),
    Release(usize),
    Mark(usize),
    Unmark(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = 0..3_usize;
    let payload = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40));
    let step = prop_oneof![
        who.clone().prop_map(Step::Ask),
        (who.clone(), payload).prop_map(|(who, payload)| Step::Fill(who, payload)),
        who.clone().prop_map(Step::Release),
        who.clone().prop_map(Step::Mark),
        who.prop_map(Step::Unmark),
    ];
    proptest::collection::vec(step, 1..25)
}

/// What the rules say must stand.
#[derive(Clone, Debug, PartialEq)]
enum Expected {
    Empty,
    Lease(usize),
    Mark(Vec<usize>),
    Entry(Option<Vec<u8>>),
}

/// Any sequence of steps leaves what the rules say. Both stores against one model, and so against
/// each other.
fn any_sequence_of_steps_follows_the_rules(fixture: impl AsyncFn() -> StoreFixture, cases: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let on = runtime.block_on(fixture());
    let mut runner = TestRunner::new(Config::with_cases(cases));
    runner
        .run(&steps(), |steps| {
            let slot = on.slot(&WriteId::fresh().to_hex());
            let ids = [(); 3].map(|()| (LeaseId::fresh(), WriteId::fresh()));
            runtime.block_on(async {
                let mut expected = Expected::Empty;
                for step in steps {
                    follow(&on, &slot, &ids, &mut expected, step).await;
                    let found = on.get(&slot).await;
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
        Expected::Mark(_) => Slot::WriteIntent,
        Expected::Entry(None) => Slot::Null { until: UNTIL },
        Expected::Entry(Some(payload)) => {
            Slot::Value { payload: Bytes::from(payload.clone()), until: UNTIL }
        }
    }
}

async fn follow(
    on: &StoreFixture,
    slot: &SlotKey,
    ids: &[(LeaseId, WriteId); 3],
    now: &mut Expected,
    step: Step,
) {
    match step {
        Step::Ask(who) => {
            let wanted = match &now {
                Expected::Empty => Slot::LeaseGranted,
                other => shown(other),
            };
            assert_eq!(on.ask(slot, ids[who].0).await, wanted);
            if *now == Expected::Empty {
                *now = Expected::Lease(who);
            }
        }
        Step::Fill(who, payload) => {
            let own = *now == Expected::Lease(who);
            let entry = payload.clone().map_or(Entry::Null, |payload| Entry::Value(payload.into()));
            let wanted = if own { Filled::Stored } else { Filled::LeaseLost };
            assert_eq!(on.fill(slot, ids[who].0, entry).await, wanted);
            if own {
                *now = Expected::Entry(payload);
            }
        }
        Step::Release(who) => {
            on.release(slot, ids[who].0).await;
            if *now == Expected::Lease(who) {
                *now = Expected::Empty;
            }
        }
        Step::Mark(who) => {
            on.put_intent(slot, ids[who].1, LONG).await;
            let mut writers = match now {
                Expected::Mark(writers) => writers.clone(),
                _ => Vec::new(),
            };
            writers.retain(|writer| *writer != who);
            writers.push(who);
            *now = Expected::Mark(writers);
        }
        Step::Unmark(who) => {
            on.clear_intent(slot, ids[who].1).await;
            let mut writers = match now {
                Expected::Mark(writers) => writers.clone(),
                _ => Vec::new(),
            };
            writers.retain(|writer| *writer != who);
            *now = if writers.is_empty() { Expected::Empty } else { Expected::Mark(writers) };
        }
    }
}

/// Random bytes, of every length that matters, as payload and as key.
fn case_25_any_payload_comes_back_as_a_value(fixture: impl AsyncFn() -> StoreFixture, cases: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let on = runtime.block_on(fixture());
    let bytes = |most| proptest::collection::vec(any::<u8>(), 0..most);
    let strategy = (bytes(300), bytes(2_000), any::<u64>());
    let mut runner = TestRunner::new(Config::with_cases(cases));
    runner
        .run(&strategy, |(key, payload, until)| {
            let (slot, lease) = (on.slot(&(key, LeaseId::fresh().to_hex())), LeaseId::fresh());
            let payload = Bytes::from(payload);
            runtime.block_on(async {
                assert_eq!(on.ask(&slot, lease).await, Slot::LeaseGranted);
                let entry = Entry::Value(payload.clone());
                let filled = on.store.fill(&slot, lease, entry, until, LONG).await;
                prop_assert_eq!(filled.unwrap(), Filled::Stored);
                prop_assert_eq!(on.get(&slot).await, Slot::Value { payload, until });
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
            fn any_sequence_of_steps_follows_the_rules() {
                super::any_sequence_of_steps_follows_the_rules(async || StoreFixture::$fixture(), $cases);
            }
        }
    };
}

for_every_store!(
    an_empty_slot_is_leased_to_the_first_asker_alone,
    only_the_holder_of_a_lease_fills_and_only_once,
    a_lease_is_given_back_by_its_holder_alone,
    case_26_a_null_comes_back_as_a_null_with_its_end,
    case_25_payloads_that_look_like_markers_come_back_as_values,
    a_lease_runs_out_and_its_holder_fills_no_more,
    entries_expire,
    a_mark_takes_the_place_of_whatever_stands,
    each_writer_removes_its_own_id_alone,
    one_end_undoes_a_repeated_begin,
    an_end_that_finds_no_mark_deletes_what_stands,
    a_mark_runs_out,
    a_mark_lives_until_its_latest_deadline,
    the_end_of_the_longest_writer_leaves_the_others_their_own_deadlines,
    an_old_lease_does_not_fill_after_its_mark_was_evicted,
    members_see_each_others_beats_until_they_leave_or_fall_silent,
    case_46_long_keys_keep_slots_of_their_own,
    case_46_keys_of_any_bytes_keep_slots_of_their_own,
    slots_of_different_prefixes_are_apart,
);
