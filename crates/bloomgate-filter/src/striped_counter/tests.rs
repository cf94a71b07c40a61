//! Tests of the striped counter.

use std::sync::Barrier;
use std::thread;

use super::*;

#[test]
fn no_count_is_lost_with_more_threads_than_stripes() {
    let threads = 2 * STRIPES;
    let (counter, barrier) = (StripedCounter::starting_at(5), Barrier::new(threads));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                barrier.wait();
                for _ in 0..1_000 {
                    counter.add(2);
                }
                // No thread ends before all have counted, so some threads have no stripe.
                barrier.wait();
            });
        }
    });
    assert_eq!(counter.total(), 5 + 2_000 * threads as u64);
}

#[test]
fn no_count_is_lost_when_stripes_are_reused_by_other_threads() {
    let counter = StripedCounter::starting_at(0);
    for _ in 0..50 {
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..100).for_each(|_| counter.add(1)));
            }
        });
    }
    assert_eq!(counter.total(), 50 * 8 * 100);
}

#[test]
fn one_thread_adds_to_several_counters() {
    let counters = [StripedCounter::starting_at(0), StripedCounter::starting_at(7)];
    for at in 0..10 {
        counters[at % 2].add(at as u64);
    }
    assert_eq!(counters.map(|counter| counter.total()), [20, 7 + 25]);
}
