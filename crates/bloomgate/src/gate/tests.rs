//! The gate's rules of its own: A1 and A2 of the protocol, the certificate, and what is in doubt.

use std::collections::HashSet;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::thread;

use bloomgate_filter::{BloomParams, HashAlgorithm};

use super::*;

const NOT_ALONE: LinkState = LinkState::OutOfSync(OpenReason::NotAlone);

fn key(id: i64) -> KeyBytes {
    KeyBytes::of(&id)
}

fn spec() -> GenerationSpec {
    let rate = bloomgate_filter::FalsePositiveRate::new(0.001).unwrap();
    GenerationSpec::Bloom(BloomParams::new(1_000, rate).unwrap(), HashAlgorithm::SipHash13)
}

fn gate_of(forced_open: bool) -> Arc<LiveGate> {
    let secret = Secret::generate().unwrap();
    Arc::new(LiveGate::new(secret, forced_open, OpenWrites::new(100)))
}

/// A gate in step with everyone, and a generation that is being filled.
fn building() -> (Arc<LiveGate>, Building) {
    let gate = gate_of(false);
    gate.set_link_state(LinkState::InSync);
    let building = gate.start_generation(spec()).unwrap();
    (gate, building)
}

/// A gate that refuses everything.
fn closed() -> Arc<LiveGate> {
    let (gate, building) = building();
    building.activate().unwrap();
    gate
}

fn holds(building: &Building, id: i64) -> bool {
    building.generation().contains(key(id).as_slice())
}

#[test]
fn a_closed_gate_refuses_what_was_never_admitted_and_passes_what_was() {
    let gate = closed();
    assert_eq!(gate.check(&1_i64), Verdict::Absent);
    gate.begin_admitting(&key(1), WriteId::fresh()).unwrap();
    assert_eq!(gate.check(&1_i64), Verdict::Maybe);
    assert_eq!(gate.check(&2_i64), Verdict::Absent);
}

#[test]
fn an_update_opens_its_key_and_admits_nothing() {
    let gate = closed();
    gate.begin_existing(&key(1), WriteId::fresh()).unwrap();
    assert!(gate.open_writes().is_open(&key(1)));
    assert_eq!(gate.check(&1_i64), Verdict::Absent);
    assert!(!holds(&gate.start_generation(spec()).unwrap(), 1));
}

// Rule A2: the copy of the open set.
#[test]
fn case_36_a_new_generation_holds_the_writes_that_were_open_before_it() {
    let gate = closed();
    gate.begin_admitting(&key(1), WriteId::fresh()).unwrap();
    let building = gate.start_generation(spec()).unwrap();
    assert!(holds(&building, 1));
    building.activate().unwrap();
    assert_eq!(gate.check(&1_i64), Verdict::Maybe);
}

// Rule A2: the subscription.
#[test]
fn case_36_a_begin_during_the_scan_admits_to_both_generations() {
    let gate = closed();
    let building = gate.start_generation(spec()).unwrap();
    gate.begin_admitting(&key(1), WriteId::fresh()).unwrap();
    gate.open_writes().for_each_admitted(|_| {});
    assert_eq!(gate.check(&1_i64), Verdict::Maybe, "not in the generation in service");
    assert!(holds(&building, 1), "not in the one being filled");
}

// Rule A1: keyed by key and write.
#[test]
fn case_36_a_second_write_that_ends_leaves_the_first_one_to_the_next_generation() {
    let gate = closed();
    let second = WriteId::fresh();
    gate.begin_admitting(&key(1), WriteId::fresh()).unwrap();
    gate.begin_admitting(&key(1), second).unwrap();
    gate.open_writes().leave(&key(1), second);
    assert!(holds(&gate.start_generation(spec()).unwrap(), 1));
}

#[test]
fn case_36_an_update_beside_a_write_does_not_hide_it_from_the_next_generation() {
    let gate = closed();
    gate.begin_admitting(&key(1), WriteId::fresh()).unwrap();
    gate.begin_existing(&key(1), WriteId::fresh()).unwrap();
    assert!(holds(&gate.start_generation(spec()).unwrap(), 1));
}

/// Keeps the open set locked in a thread of its own until `go`, then runs `then` in that thread.
fn while_the_open_set_is_locked<T: Send>(
    gate: &LiveGate,
    meanwhile: impl FnOnce(),
    then: impl FnOnce() -> T + Send,
) -> T {
    gate.begin_admitting(&key(-1), WriteId::fresh()).unwrap();
    let (is_held, go) = (AtomicBool::new(false), AtomicBool::new(false));
    let wait_for = |flag: &AtomicBool| {
        while !flag.load(Ordering::SeqCst) {
            thread::yield_now();
        }
    };
    thread::scope(|threads| {
        let holding = threads.spawn(|| {
            let mut once = false;
            gate.open_writes().for_each_admitted(|_| {
                if !std::mem::replace(&mut once, true) {
                    is_held.store(true, Ordering::SeqCst);
                    wait_for(&go);
                }
            });
            then()
        });
        wait_for(&is_held);
        meanwhile();
        go.store(true, Ordering::SeqCst);
        holding.join().unwrap()
    })
}

// Rule A2, the order: the generation is subscribed before the open set is copied.
#[test]
fn case_36_a_new_generation_subscribes_before_it_copies_the_open_set() {
    let gate = closed();
    let mut subscribed = false;
    let building = thread::scope(|threads| {
        let mut building = None;
        while_the_open_set_is_locked(
            &gate,
            || {
                building = Some(threads.spawn(|| gate.start_generation(spec()).unwrap()));
                // One that waits for the open set first would never be seen here.
                for _ in 0..200_000 {
                    subscribed = gate.snapshot().2.is_some();
                    if subscribed {
                        break;
                    }
                    thread::yield_now();
                }
            },
            || {},
        );
        building.unwrap().join().unwrap()
    });
    assert!(subscribed, "it copies the open set before anybody admits to it");
    assert!(holds(&building, -1));
}

// Rule A1, the order: a Begin enters the open set before it looks which generations there are.
// The Begin waits for the open set; the thread that gives it up begins a generation at once, and
// mostly has copied the set before the Begin gets its turn.
#[test]
fn case_36_a_begin_looks_for_generations_after_it_has_entered_the_open_set() {
    for round in 0..200_i64 {
        let (gate, about_to) = (closed(), Barrier::new(2));
        let (building, beginning) = thread::scope(|threads| {
            let mut beginning = None;
            let building = while_the_open_set_is_locked(
                &gate,
                || {
                    beginning = Some(threads.spawn(|| {
                        about_to.wait();
                        gate.begin_admitting(&key(round), WriteId::fresh()).unwrap();
                    }));
                    about_to.wait();
                    // Long enough for it to come to the lock, on a machine that isn't busy.
                    (0..200).for_each(|_| thread::yield_now());
                },
                || gate.start_generation(spec()).unwrap(),
            );
            (building, beginning.unwrap().join())
        });
        beginning.unwrap();
        assert!(holds(&building, round), "round {round}");
    }
}

// Whoever is first, the generation has the key.
#[test]
fn case_36_a_begin_that_races_with_a_new_generation_is_in_it() {
    let gate = closed();
    for round in 0..2_000_i64 {
        let barrier = Barrier::new(2);
        let write = WriteId::fresh();
        let building = thread::scope(|threads| {
            let building = threads.spawn(|| {
                barrier.wait();
                gate.start_generation(spec()).unwrap()
            });
            barrier.wait();
            gate.begin_admitting(&key(round), write).unwrap();
            building.join().unwrap()
        });
        assert!(holds(&building, round), "round {round}");
        gate.open_writes().leave(&key(round), write);
    }
}

// Promise P1 across the swap: no thread that checks sees a moment without the key.
#[test]
fn case_36_the_swap_is_one_step() {
    let gate = closed();
    gate.begin_admitting(&key(1), WriteId::fresh()).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|threads| {
        let checking = threads.spawn(|| {
            let mut verdicts = 0_u64;
            while !done.load(Ordering::Relaxed) {
                assert_eq!(gate.check(&1_i64), Verdict::Maybe);
                verdicts += 1;
            }
            verdicts
        });
        for _ in 0..500 {
            gate.start_generation(spec()).unwrap().activate().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        assert!(checking.join().unwrap() > 0);
    });
}

#[test]
fn each_generation_hashes_under_a_key_of_its_own() {
    let gate = closed();
    let mut passed = HashSet::new();
    for _ in 0..3 {
        let building = gate.start_generation(spec()).unwrap();
        (0..1_000_i64).for_each(|id| building.generation().insert(key(id).as_slice()));
        building.activate().unwrap();
        // False positives of one generation aren't those of the next.
        let strangers = 1_000_000..2_000_000_i64;
        let now: HashSet<_> = strangers.filter(|id| gate.check(id) == Verdict::Maybe).collect();
        assert!(!now.is_empty() && now.len() < 3_000, "{}", now.len());
        assert!(now.intersection(&passed).count() < 30);
        passed = now;
    }
}

// Case C35.
#[test]
fn case_35_a_generation_that_is_dropped_is_as_if_it_had_never_been() {
    let (gate, building) = building();
    assert!(gate.snapshot().2.is_some());
    drop(building);
    assert!(gate.snapshot().2.is_none());
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::Warming));
    assert!(!gate.was_complete() && !gate.is_certified());
}

#[test]
fn case_35_a_dropped_rebuild_leaves_the_generation_in_service() {
    let gate = closed();
    let first = gate.start_generation(spec()).unwrap();
    let second = gate.start_generation(spec()).unwrap();
    drop(first);
    assert!(gate.snapshot().2.is_some(), "an older one took its successor off the view");
    drop(second);
    assert_eq!(gate.check(&1_i64), Verdict::Absent);
    assert!(gate.is_certified());
}

#[test]
fn before_anything_is_known_the_gate_is_warming() {
    let gate = gate_of(false);
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::Warming));
    assert_eq!(gate.known(&key(1)), Known::Unknown);
    gate.set_link_state(LinkState::InSync);
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::Warming));
    gate.set_link_state(NOT_ALONE);
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::NotAlone));
}

// Promise P2: a loss voids the certificate for good.
#[test]
fn a_break_in_the_standing_needs_a_generation_begun_after_it() {
    let gate = closed();
    let begun_before = gate.start_generation(spec()).unwrap();
    gate.set_link_state(NOT_ALONE);
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::NotAlone));
    gate.set_link_state(LinkState::InSync);
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::Rebuilding));
    assert!(!gate.is_certified() && gate.was_complete());
    assert_eq!(begun_before.activate(), Err(OpenReason::Rebuilding));
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::Rebuilding));
    gate.start_generation(spec()).unwrap().activate().unwrap();
    assert_eq!(gate.check(&1_i64), Verdict::Absent);
}

#[test]
fn a_generation_is_not_put_in_service_while_in_doubt() {
    let (gate, building) = building();
    gate.set_link_state(NOT_ALONE);
    assert_eq!(building.activate(), Err(OpenReason::NotAlone));
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::NotAlone));
    assert!(!gate.was_complete());
}

// Every change of the standing keeps what the view holds, and the same standing changes nothing.
#[test]
fn the_standing_touches_no_generation() {
    let gate = closed();
    let building = gate.start_generation(spec()).unwrap();
    gate.set_link_state(LinkState::InSync);
    assert!(gate.is_certified());
    gate.set_link_state(NOT_ALONE);
    gate.set_link_state(LinkState::OutOfSync(OpenReason::Joining));
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::Joining));
    let (_, serving, being_built) = gate.snapshot();
    assert_eq!((serving.unwrap().number(), being_built.unwrap().number()), (1, 2));
    // Begins reach both all the time.
    gate.begin_admitting(&key(1), WriteId::fresh()).unwrap();
    assert_eq!(gate.known(&key(1)), Known::Maybe);
    assert_eq!(gate.known(&key(2)), Known::No);
    assert!(holds(&building, 1));
}

#[test]
fn a_gate_that_is_forced_open_stays_open() {
    let gate = gate_of(true);
    gate.set_link_state(LinkState::InSync);
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::Forced));
    gate.start_generation(spec()).unwrap().activate().unwrap();
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::Forced));
}

#[test]
fn a_write_too_many_is_refused_and_admits_nothing() {
    let gate = closed();
    for id in 0..100 {
        gate.begin_admitting(&key(id), WriteId::fresh()).unwrap();
    }
    assert_eq!(gate.begin_admitting(&key(500), WriteId::fresh()).unwrap_err().limit, 100);
    assert_eq!(gate.begin_existing(&key(1), WriteId::fresh()).unwrap_err().limit, 100);
    assert_eq!(gate.check(&500_i64), Verdict::Absent);
    assert!(!gate.open_writes().is_open(&key(500)));
}

// Case C01, for the gate alone.
#[test]
fn case_01_a_gate_for_no_rows_is_sized_for_some() {
    let capacity = config::Capacity::Counted.for_rows(0);
    assert_eq!(capacity, config::AT_LEAST);
    assert_eq!(config::Capacity::Counted.for_rows(u64::MAX), u64::MAX);
    assert_eq!(config::Capacity::Fixed(5).for_rows(1_000_000), 5);
}

#[test]
fn every_answer_of_a_gate_under_doubt_names_its_reason() {
    let doubts =
        [OpenReason::Joining, OpenReason::NotAlone, OpenReason::Rebuilding, OpenReason::Forced];
    let gate = closed();
    for why in doubts {
        gate.set_link_state(LinkState::OutOfSync(why));
        assert_eq!(gate.check(&1_i64), Verdict::Unknown(why));
    }
}
