//! Tests of the exact set.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

const THREADS: usize = if cfg!(miri) { 3 } else { 16 };
const EACH: usize = if cfg!(miri) { 12 } else { 1_500 };

fn key(thread: usize, n: usize) -> Vec<u8> {
    format!("key {n} of thread {thread}").into_bytes()
}

#[test]
fn case_01_empty_exact_set_contains_nothing_and_accepts_a_first_key() {
    for set in [ExactSet::new(), ExactSet::default(), ExactSet::with_capacity(0)] {
        assert!(!set.contains(b"") && !set.contains(b"a"));
        assert!(set.is_empty());
        assert_eq!(set.stats().fill_ratio, 0.0);
        assert!(set.insert(b"a"));
        assert!(set.contains(b"a") && !set.contains(b"b"));
        assert!(!set.is_empty());
    }
}

#[test]
fn insert_returns_true_once_per_key() {
    let set = ExactSet::new();
    assert!(set.insert(b""));
    assert!(!set.insert(b""));
    assert!(set.insert(&[0]));
    assert!(set.insert(&[0, 0]));
    assert_eq!(set.len(), 3);
    let stats = set.stats();
    assert_eq!((stats.items, stats.distinct, stats.capacity, stats.hashes), (4, Some(3), None, 0));
    assert_eq!(stats.fill_ratio, 3.0 / 16.0);
    assert_eq!((stats.expected_false_positive_rate, stats.current_false_positive_rate), (0.0, 0.0));
}

#[test]
#[cfg_attr(miri, ignore = "too many slots")]
fn case_10_huge_initial_capacity_is_capped() {
    let set = ExactSet::with_capacity(usize::MAX);
    assert!(set.bytes() < 4 << 20, "{}", set.bytes());
    assert!(set.insert(b"a"));
}

#[test]
#[cfg_attr(miri, ignore = "too many keys")]
fn exact_set_memory_matches_the_documented_overhead() {
    let set = ExactSet::new();
    for n in 0..5_000 {
        set.insert(&key(0, n));
    }
    let length: u64 = (0..5_000).map(|n| key(0, n).len() as u64).sum();
    let overhead = (set.bytes() - length) as f64 / 5_000.0;
    assert!((64.0..=120.0).contains(&overhead), "{overhead}");
}

#[test]
#[cfg_attr(miri, ignore = "too many keys")]
fn planned_bytes_of_an_exact_set_match_its_memory() {
    for count in [0, 1, 8, 9, 1_000, 8_192, 8_193, 20_000] {
        for len in [8, 9, 36] {
            let set = ExactSet::new();
            for n in 0..count {
                let mut key = vec![0; len];
                key[..8].copy_from_slice(&u64::to_le_bytes(n));
                set.insert(&key);
            }
            let fixed = ExactSet::new().bytes();
            let planned = ExactSet::planned_bytes(count, len);
            assert_eq!(u128::from(set.bytes() - fixed), planned, "{count} of {len} bytes");
        }
    }
    assert!(ExactSet::planned_bytes(u64::MAX, usize::MAX / 2) > u128::from(u64::MAX));
}

#[test]
fn merge_unites_the_sets_and_leaves_the_other_unchanged() {
    let (left, right) = (ExactSet::new(), ExactSet::new());
    for n in 0..100 {
        left.insert(&key(0, n));
        right.insert(&key(0, n + 50));
    }
    left.merge(&right);
    assert_eq!((left.len(), right.len()), (150, 100));
    assert!((0..150).all(|n| left.contains(&key(0, n))));
    left.merge(&left);
    assert_eq!((left.len(), left.stats().items), (150, 150));
}

#[test]
fn debug_output_contains_no_key() {
    let set = ExactSet::new();
    set.insert(b"alice@example.org");
    let shown = format!("{set:?}");
    assert!(shown.contains("distinct: Some(1)"), "{shown}");
    assert!(!shown.contains("alice") && !shown.contains("97"), "{shown}");
}

#[test]
fn set_works_as_a_membership_trait_object() {
    let set: Arc<dyn Membership> = Arc::new(ExactSet::new());
    assert!(set.insert(b"a"));
    set.insert_many(&[b"b", b"c"]);
    let mut answers = vec![true; 9];
    set.contains_many(&[b"a", b"d", b"c"], &mut answers);
    assert_eq!(answers, [true, false, true]);
    assert_eq!((set.family(), set.stats().distinct), (Family::Exact, Some(3)));
}

#[test]
fn case_11_inserted_keys_stay_visible_while_the_set_grows() {
    let set = ExactSet::new();
    let published: Vec<_> = (0..THREADS).map(|_| AtomicUsize::new(0)).collect();
    let barrier = Barrier::new(THREADS + 2);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (set, barrier, published) = (&set, &barrier, &published);
            scope.spawn(move || {
                barrier.wait();
                for n in 0..EACH {
                    assert!(set.insert(&key(thread, n)));
                    published[thread].store(n + 1, Ordering::Release);
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                barrier.wait();
                let mut round = 0;
                loop {
                    let seen = published.iter().map(|count| count.load(Ordering::Acquire));
                    let seen: Vec<_> = seen.collect();
                    for (thread, &count) in seen.iter().enumerate().filter(|(_, count)| **count > 0)
                    {
                        for n in [count - 1, round % count] {
                            assert!(set.contains(&key(thread, n)), "{n} of {thread}");
                        }
                    }
                    round += 1;
                    if seen.iter().all(|&count| count == EACH) {
                        break;
                    }
                    thread::yield_now();
                }
            });
        }
    });
    assert_eq!(set.len(), (THREADS * EACH) as u64);
    assert_eq!(set.sorted_keys().len(), THREADS * EACH);
}

#[test]
fn case_11_concurrent_inserts_of_one_key_return_true_exactly_once() {
    let set = ExactSet::new();
    let barrier = Barrier::new(THREADS);
    let new: Vec<Vec<bool>> = thread::scope(|scope| {
        let work = || {
            barrier.wait();
            (0..EACH).map(|n| set.insert(&key(0, n))).collect()
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for n in 0..EACH {
        assert_eq!(new.iter().filter(|new| new[n]).count(), 1, "{n}");
    }
    assert_eq!(set.stats().items, (THREADS * EACH) as u64);
}

#[test]
fn lookups_do_not_wait_for_the_write_lock() {
    let set = Arc::new(ExactSet::new());
    set.insert(b"a");
    let (send, receive) = mpsc::channel();
    let lock = set.write_lock();
    let reader = Arc::clone(&set);
    thread::spawn(move || {
        // Inserting a present key again needs no lock.
        let answers = (reader.contains(b"a"), reader.contains(b"b"), reader.insert(b"a"));
        send.send((answers, reader.stats().distinct)).unwrap();
    });
    // The timeout only ends a failed test.
    let answers = receive.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(answers, ((true, false, false), Some(1)));
    drop(lock);
}

#[test]
fn a_panicked_writer_does_not_block_later_inserts() {
    let set = ExactSet::new();
    let panicked = thread::scope(|scope| {
        let work = || {
            let _lock = set.write_lock();
            panic!("panic under the lock");
        };
        scope.spawn(work).join().is_err()
    });
    assert!(panicked);
    assert!(set.insert(b"a") && set.contains(b"a"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 64 }))]

    #[test]
    fn exact_set_agrees_with_a_btree_set(
        keys in prop::collection::vec(prop::collection::vec(0_u8..3, 0..4), 0..120),
        others in prop::collection::vec(prop::collection::vec(0_u8..3, 0..4), 0..40),
        capacity in 0_usize..40,
    ) {
        let (set, other) = (ExactSet::with_capacity(capacity), ExactSet::new());
        let mut model = BTreeSet::new();
        for key in &keys {
            prop_assert_eq!(set.contains(key), model.contains(key));
            prop_assert_eq!(set.insert(key), model.insert(key.clone()));
            prop_assert!(set.contains(key));
        }
        for key in &others {
            other.insert(key);
            model.insert(key.clone());
        }
        set.merge(&other);
        prop_assert_eq!(set.len(), model.len() as u64);
        let sorted: Vec<_> = set.sorted_keys().iter().map(|key| key.to_vec()).collect();
        prop_assert_eq!(sorted, model.into_iter().collect::<Vec<_>>());
    }
}
