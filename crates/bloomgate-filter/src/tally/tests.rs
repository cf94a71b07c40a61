//! Tests of the count.

use std::sync::Barrier;
use std::thread;

use super::*;

#[test]
fn no_count_is_lost_with_more_threads_than_places() {
    let threads = 2 * PLACES;
    let (tally, barrier) = (Tally::starting_at(5), Barrier::new(threads));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                barrier.wait();
                for _ in 0..1_000 {
                    tally.add(2);
                }
                // All are alive until all have counted, so that some must share.
                barrier.wait();
            });
        }
    });
    assert_eq!(tally.total(), 5 + 2_000 * threads as u64);
}

#[test]
fn no_count_is_lost_when_places_pass_from_thread_to_thread() {
    let tally = Tally::starting_at(0);
    for _ in 0..50 {
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..100).for_each(|_| tally.add(1)));
            }
        });
    }
    assert_eq!(tally.total(), 50 * 8 * 100);
}

#[test]
fn one_thread_counts_in_several_tallies() {
    let tallies = [Tally::starting_at(0), Tally::starting_at(7)];
    for at in 0..10 {
        tallies[at % 2].add(at as u64);
    }
    assert_eq!(tallies.map(|tally| tally.total()), [20, 7 + 25]);
}
