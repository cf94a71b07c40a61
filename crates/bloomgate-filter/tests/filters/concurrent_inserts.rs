//! What threads are told of the same keys.

use std::sync::Barrier;
use std::thread;

use crate::fixtures::EVERY_KIND;

#[test]
fn case_11_of_threads_that_insert_the_same_key_at_least_one_is_told_it_is_new() {
    const KEYS: usize = 2_000;
    for build in EVERY_KIND {
        // Large enough that no key finds all its bits set by others.
        let (filter, _) = build(1_000_000, 1e-6);
        let barrier = Barrier::new(16);
        let told: Vec<Vec<bool>> = thread::scope(|scope| {
            let work = || {
                barrier.wait();
                (0..KEYS as u64).map(|n| filter.insert(&n.to_le_bytes())).collect()
            };
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for key in 0..KEYS {
            assert!(told.iter().any(|told| told[key]), "{key}");
        }
        assert!((0..KEYS as u64).all(|n| !filter.insert(&n.to_le_bytes())));
    }
}
