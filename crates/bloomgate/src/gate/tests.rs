//! Rules A1 and A2 of the protocol, the certificate, and the reasons for an open gate.

use std::collections::HashSet;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use bloomgate_filter::HashAlgorithm;

use super::*;
use crate::clock::{ManualTime, Moment};
use crate::ports::WriteId;

const IN_SYNC: LinkState = LinkState::InSync { until: Moment::NEVER };
const LINK_LOST: LinkState = LinkState::OutOfSync(OpenReason::LinkLost);

fn key(id: i64) -> KeyBytes {
    KeyBytes::of(&id)
}

fn spec() -> GenerationSpec {
    let rate = bloomgate_filter::FalsePositiveRate::new(0.001).unwrap();
    let (capacity, hash) = (Capacity::Fixed(1_000), HashAlgorithm::SipHash13);
    GenerationSpec::Bloom { capacity, rate, hash }
}

fn gate_of(forced_open: bool) -> Arc<LiveGate> {
    let secret = Secret::generate().unwrap();
    Arc::new(LiveGate::new(secret, forced_open, 100, Clock::system()))
}

/// A write of the key that never lapses.
fn write(id: i64, admits: bool) -> PeerWrite {
    PeerWrite::new(key(id), WriteId::fresh(), admits, Moment::NEVER)
}

/// Begins a write that may make the key.
fn admit(gate: &LiveGate, id: i64) -> WriteId {
    let write = write(id, true);
    gate.begin(&write).unwrap();
    write.write
}

/// A gate in sync with every other instance, and a generation that is being filled.
fn building() -> (Arc<LiveGate>, Building) {
    let gate = gate_of(false);
    gate.set_link(IN_SYNC);
    let building = gate.start_generation(&spec(), 0).unwrap();
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
    admit(&gate, 1);
    assert_eq!(gate.check(&1_i64), Verdict::Maybe);
    assert_eq!(gate.check(&2_i64), Verdict::Absent);
}

#[test]
fn an_update_opens_its_key_and_admits_nothing() {
    let gate = closed();
    gate.begin(&write(1, false)).unwrap();
    assert!(gate.open_writes().is_open(&key(1)));
    assert_eq!(gate.check(&1_i64), Verdict::Absent);
    assert!(!holds(&gate.start_generation(&spec(), 0).unwrap(), 1));
}

// Rule A2: the copy of the open set.
#[test]
fn case_36_a_new_generation_holds_the_writes_that_were_open_before_it() {
    let gate = closed();
    admit(&gate, 1);
    let building = gate.start_generation(&spec(), 0).unwrap();
    assert!(holds(&building, 1));
    building.activate().unwrap();
    assert_eq!(gate.check(&1_i64), Verdict::Maybe);
}

// Rule A2: the subscription.
#[test]
fn case_36_a_begin_during_the_scan_admits_to_both_generations() {
    let gate = closed();
    let building = gate.start_generation(&spec(), 0).unwrap();
    admit(&gate, 1);
    gate.open_writes().for_each_admitted(|_| {});
    assert_eq!(gate.check(&1_i64), Verdict::Maybe, "not in the generation in service");
    assert!(holds(&building, 1), "not in the one being filled");
}

// Rule A1: keyed by key and write.
#[test]
fn case_36_a_second_write_that_ends_leaves_the_first_one_to_the_next_generation() {
    let gate = closed();
    admit(&gate, 1);
    let second = admit(&gate, 1);
    gate.open_writes().leave(&key(1), second);
    assert!(holds(&gate.start_generation(&spec(), 0).unwrap(), 1));
}

#[test]
fn case_36_an_update_beside_a_write_does_not_hide_it_from_the_next_generation() {
    let gate = closed();
    admit(&gate, 1);
    gate.begin(&write(1, false)).unwrap();
    assert!(holds(&gate.start_generation(&spec(), 0).unwrap(), 1));
}

/// Keeps the open set locked in a thread of its own until `go`, then runs `then` in that thread.
fn while_the_open_set_is_locked<T: Send>(
    gate: &LiveGate,
    meanwhile: impl FnOnce(),
    then: impl FnOnce() -> T + Send,
) -> T {
    admit(gate, -1);
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
                building = Some(threads.spawn(|| gate.start_generation(&spec(), 0).unwrap()));
                // One that waits for the open set first would never be seen here.
                for _ in 0..200_000 {
                    subscribed = gate.snapshot().building.is_some();
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
    assert!(subscribed, "it copies the open set before a Begin can admit to it");
    assert!(holds(&building, -1));
}

// Rule A1, the order: a Begin enters the open set before it looks which generations there are.
// The Begin waits for the open set; the thread that gives it up begins a generation at once, and
// mostly has copied the set before the Begin gets the lock.
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
                        admit(&gate, round);
                    }));
                    about_to.wait();
                    // Long enough for it to come to the lock, on a machine that isn't busy.
                    (0..200).for_each(|_| thread::yield_now());
                },
                || gate.start_generation(&spec(), 0).unwrap(),
            );
            (building, beginning.unwrap().join())
        });
        beginning.unwrap();
        assert!(holds(&building, round), "round {round}");
    }
}

// In either order, the generation has the key.
#[test]
fn case_36_a_begin_that_races_with_a_new_generation_is_in_it() {
    let gate = closed();
    for round in 0..2_000_i64 {
        let barrier = Barrier::new(2);
        let write = write(round, true);
        let building = thread::scope(|threads| {
            let building = threads.spawn(|| {
                barrier.wait();
                gate.start_generation(&spec(), 0).unwrap()
            });
            barrier.wait();
            gate.begin(&write).unwrap();
            building.join().unwrap()
        });
        assert!(holds(&building, round), "round {round}");
        gate.open_writes().leave(&key(round), write.write);
    }
}

// Promise P1 across the swap: no thread that checks sees a moment without the key.
#[test]
fn case_36_the_swap_is_one_step() {
    let gate = closed();
    admit(&gate, 1);
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
            gate.start_generation(&spec(), 0).unwrap().activate().unwrap();
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
        let building = gate.start_generation(&spec(), 0).unwrap();
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
    assert!(gate.snapshot().building.is_some());
    drop(building);
    assert!(gate.snapshot().building.is_none());
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::Warming));
    assert_eq!(gate.known(&key(1)), Known::Unknown);
    assert!(!gate.is_certified());
}

#[test]
fn case_35_a_dropped_rebuild_leaves_the_generation_in_service() {
    let gate = closed();
    let first = gate.start_generation(&spec(), 0).unwrap();
    let second = gate.start_generation(&spec(), 0).unwrap();
    drop(first);
    assert!(gate.snapshot().building.is_some(), "an older one took its successor off the view");
    drop(second);
    assert_eq!(gate.check(&1_i64), Verdict::Absent);
    assert!(gate.is_certified());
}

#[test]
fn before_anything_is_known_the_gate_is_warming() {
    let gate = gate_of(false);
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::Warming));
    assert_eq!(gate.known(&key(1)), Known::Unknown);
    gate.set_link(IN_SYNC);
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::Warming));
    gate.set_link(LINK_LOST);
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::LinkLost));
}

// Promise P2: admissions may have been missed.
#[test]
fn after_a_void_only_a_generation_begun_since_refuses() {
    let gate = closed();
    let begun_before = gate.start_generation(&spec(), 0).unwrap();
    gate.void();
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::Rebuilding));
    assert!(!gate.is_certified());
    assert_ne!(gate.known(&key(1)), Known::Unknown);
    assert_eq!(begun_before.activate(), Err(OpenReason::Rebuilding));
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::Rebuilding));
    gate.start_generation(&spec(), 0).unwrap().activate().unwrap();
    assert_eq!(gate.check(&1_i64), Verdict::Absent);
}

#[test]
fn a_link_that_is_lost_and_found_needs_no_new_generation() {
    let gate = closed();
    let begun_before = gate.start_generation(&spec(), 0).unwrap();
    gate.set_link(LinkState::OutOfSync(OpenReason::LinkLost));
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::LinkLost));
    assert!(gate.is_certified());
    // What the others began meanwhile is delivered before the link is in sync again.
    admit(&gate, 1);
    gate.set_link(IN_SYNC);
    assert_eq!(gate.check(&1_i64), Verdict::Maybe);
    assert_eq!(gate.check(&2_i64), Verdict::Absent);
    begun_before.activate().unwrap();
    assert_eq!(gate.check(&1_i64), Verdict::Maybe);
}

/// A closed gate whose lease ends three seconds after the start of the clock.
fn leased() -> (Arc<LiveGate>, Clock, ManualTime) {
    let (clock, time) = Clock::manual();
    let secret = Secret::generate().unwrap();
    let gate = Arc::new(LiveGate::new(secret, false, 100, clock.clone()));
    let until = clock.now() + Duration::from_secs(3);
    gate.set_link(LinkState::InSync { until });
    gate.start_generation(&spec(), 0).unwrap().activate().unwrap();
    (gate, clock, time)
}

// Rule C20: no task runs in between.
#[test]
fn a_lease_that_has_ended_opens_the_gate_by_the_clock_alone() {
    let (gate, clock, time) = leased();
    admit(&gate, 1);
    assert_eq!(gate.check(&2_i64), Verdict::Absent);
    assert!(gate.spares_caches());
    time.advance(Duration::from_secs(3));
    assert_eq!(gate.check(&2_i64), Verdict::Unknown(OpenReason::LeaseEnded));
    assert_eq!(gate.open_reason(), Some(OpenReason::LeaseEnded));
    assert!(!gate.spares_caches());
    gate.set_link(LinkState::InSync { until: clock.now() + Duration::from_secs(3) });
    assert_eq!(gate.check(&2_i64), Verdict::Absent);
    assert!(gate.spares_caches());
}

// A thread may hold the view of before a void for as long as it is preempted.
#[test]
fn a_void_ends_the_lease_of_every_view_before_it() {
    let (gate, clock, _time) = leased();
    let before = gate.view.load_full();
    gate.void();
    gate.set_link(LinkState::InSync { until: clock.now() + Duration::from_secs(3) });
    assert!(before.lease_end.has_passed(&clock));
    gate.start_generation(&spec(), 0).unwrap().activate().unwrap();
    assert_eq!(gate.check(&2_i64), Verdict::Absent);
}

#[test]
fn only_reasons_that_say_nothing_of_other_instances_spare_the_local_cache() {
    let gate = gate_of(true);
    assert!(!gate.spares_caches(), "before the link is up");
    gate.set_link(IN_SYNC);
    assert!(gate.spares_caches(), "forced open, warming");
    gate.set_link(LinkState::OutOfSync(OpenReason::LinkLost));
    assert_eq!(gate.open_reason(), Some(OpenReason::Forced));
    assert!(!gate.spares_caches(), "the loss hides behind another reason");
    gate.set_link(IN_SYNC);
    gate.void();
    gate.shut_down();
    assert_eq!(gate.open_reason(), Some(OpenReason::ShuttingDown));
    assert!(gate.spares_caches());
}

#[test]
fn a_guard_that_shuts_down_refuses_nothing() {
    let gate = closed();
    gate.shut_down();
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::ShuttingDown));
}

// Every change of the link keeps what the view holds.
#[test]
fn the_link_touches_no_generation() {
    let gate = closed();
    let building = gate.start_generation(&spec(), 0).unwrap();
    gate.set_link(LINK_LOST);
    gate.set_link(LinkState::OutOfSync(OpenReason::Joining));
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::Joining));
    let now = gate.snapshot();
    assert_eq!((now.serving.unwrap().number(), now.building.unwrap().number()), (1, 2));
    // Begins reach both all the time.
    admit(&gate, 1);
    assert_eq!(gate.known(&key(1)), Known::Maybe);
    assert_eq!(gate.known(&key(2)), Known::No);
    assert!(holds(&building, 1));
}

#[test]
fn a_gate_that_is_forced_open_stays_open() {
    let gate = gate_of(true);
    gate.set_link(IN_SYNC);
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::Forced));
    gate.start_generation(&spec(), 0).unwrap().activate().unwrap();
    assert_eq!(gate.check(&1_i64), Verdict::Unknown(OpenReason::Forced));
}

#[test]
fn a_write_too_many_is_refused_and_admits_nothing() {
    let gate = closed();
    for id in 0..100 {
        admit(&gate, id);
    }
    assert_eq!(gate.begin(&write(500, true)).unwrap_err().limit, 100);
    assert_eq!(gate.begin(&write(1, false)).unwrap_err().limit, 100);
    assert_eq!(gate.check(&500_i64), Verdict::Absent);
    assert!(!gate.open_writes().is_open(&key(500)));
}

// Case C01, for the gate alone.
#[test]
fn case_01_a_gate_for_no_rows_is_sized_for_some() {
    assert_eq!(Capacity::Counted.for_rows(0), config::AT_LEAST);
    assert_eq!(Capacity::Counted.for_rows(u64::MAX), u64::MAX);
}

#[test]
fn every_answer_of_a_gate_under_doubt_names_its_reason() {
    let doubts =
        [OpenReason::Joining, OpenReason::LinkLost, OpenReason::Rebuilding, OpenReason::Forced];
    let gate = closed();
    for reason in doubts {
        gate.set_link(LinkState::OutOfSync(reason));
        assert_eq!(gate.check(&1_i64), Verdict::Unknown(reason));
    }
}

/// What another instance has, that holds 1 to 9.
fn other_instances_gate() -> bloomgate_filter::AnySet {
    let set = bloomgate_filter::ExactSet::new();
    for id in 1..10 {
        bloomgate_filter::Membership::insert(&set, key(id).as_slice());
    }
    set.into()
}

// Rule C22. What the other instance had applied by then is in its gate; of everything else this
// instance must have kept the key, however early the write ended.
#[test]
fn a_copied_gate_holds_what_was_open_or_admitted_since_it_was_asked_for() {
    let gate = gate_of(false);
    gate.set_link(IN_SYNC);
    let (open_before, over_before) = (admit(&gate, 10), admit(&gate, 11));
    gate.open_writes().leave(&key(11), over_before);
    let copying = gate.start_copy();
    gate.open_writes().leave(&key(10), open_before);
    let over_meanwhile = admit(&gate, 12);
    gate.open_writes().leave(&key(12), over_meanwhile);
    admit(&gate, 13);
    gate.begin(&write(14, false)).unwrap();
    let building = copying.install(other_instances_gate()).unwrap();
    admit(&gate, 15);
    building.activate().unwrap();
    for id in [1, 9, 10, 12, 13, 15] {
        assert_eq!(gate.check(&id), Verdict::Maybe, "{id}");
    }
    // Its Begin had returned before: the other instance had it, or would have no lease.
    assert_eq!(gate.check(&11_i64), Verdict::Absent);
    assert_eq!(gate.check(&14_i64), Verdict::Absent, "an update admits nothing");
}

#[test]
fn a_copy_of_before_a_void_is_never_trusted() {
    let gate = gate_of(false);
    gate.set_link(IN_SYNC);
    let copying = gate.start_copy();
    gate.void();
    let building = copying.install(other_instances_gate()).unwrap();
    assert_eq!(building.activate(), Err(OpenReason::Rebuilding));
    assert_eq!(gate.check(&99_i64), Verdict::Unknown(OpenReason::Warming));
}

#[test]
fn only_a_gate_that_could_refuse_now_is_given_away() {
    let (clock, time) = Clock::manual();
    let secret = Secret::generate().unwrap();
    let gate = Arc::new(LiveGate::new(secret, false, 100, clock.clone()));
    let until = clock.now() + Duration::from_secs(3);
    gate.set_link(LinkState::InSync { until });
    assert!(gate.to_copy().is_none(), "it is warming");
    gate.start_generation(&spec(), 0).unwrap().activate().unwrap();
    assert!(gate.to_copy().is_some());
    time.advance(Duration::from_secs(3));
    assert!(gate.to_copy().is_none(), "its lease has ended");
    gate.set_link(LinkState::InSync { until: Moment::NEVER });
    assert!(gate.to_copy().is_some());
    gate.set_link(LINK_LOST);
    assert!(gate.to_copy().is_none());
    gate.set_link(IN_SYNC);
    gate.void();
    assert!(gate.to_copy().is_none());
}

#[test]
fn no_key_is_missed_by_a_copy_while_threads_admit() {
    for _ in 0..40 {
        let gate = gate_of(false);
        gate.set_link(IN_SYNC);
        let (over, start) = (AtomicBool::new(false), Barrier::new(4));
        let copying = gate.start_copy();
        let admitted = thread::scope(|scope| {
            let threads: Vec<_> = (1..=3)
                .map(|thread| {
                    let (gate, over, start) = (&gate, &over, &start);
                    scope.spawn(move || {
                        start.wait();
                        let mut ids = Vec::new();
                        while ids.len() < 200 || !over.load(Ordering::Relaxed) {
                            let id = thread * 1_000_000 + ids.len() as i64;
                            let write = admit(gate, id);
                            // Over at once: only its trace is left.
                            gate.open_writes().leave(&key(id), write);
                            ids.push(id);
                        }
                        ids
                    })
                })
                .collect();
            start.wait();
            let building = copying.install(other_instances_gate()).unwrap();
            building.activate().unwrap();
            over.store(true, Ordering::Relaxed);
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        for id in admitted {
            assert_eq!(gate.check(&id), Verdict::Maybe, "{id}");
        }
    }
}
