//! Tests of the result of concurrent inserts.

use std::sync::Barrier;
use std::thread;

use crate::fixtures::ALL_FILTERS;

#[test]
fn case_11_of_concurrent_inserts_of_a_new_key_at_least_one_returns_true() {
    const KEYS: usize = 2_000;
    for build in ALL_FILTERS {
        // Large enough that no key has all its bits set by other keys.
        let (filter, _) = build(1_000_000, 1e-6);
        let barrier = Barrier::new(16);
        let results: Vec<Vec<bool>> = thread::scope(|scope| {
            let work = || {
                barrier.wait();
                (0..KEYS as u64).map(|n| filter.insert(&n.to_le_bytes())).collect()
            };
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for key in 0..KEYS {
            assert!(results.iter().any(|new| new[key]), "{key}");
        }
        assert!((0..KEYS as u64).all(|n| !filter.insert(&n.to_le_bytes())));
    }
}
