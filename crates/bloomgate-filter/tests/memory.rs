//! Tests of `bytes()` of the exact families against the actual allocations.

#![expect(clippy::unwrap_used, reason = "a failure fails the test")]

use bloomgate_filter::{Bitmap, ExactSet};

/// The heap bytes that `fill` allocates, and the bytes that the resulting set reports.
fn measured<S>(fill: impl FnOnce() -> S, bytes: impl Fn(&S) -> u64) -> (u64, u64) {
    let mut set = None;
    let counted = allocation_counter::measure(|| set = Some(fill()));
    (u64::try_from(counted.bytes_current).unwrap(), bytes(&set.unwrap()))
}

/// The counters of inserts and of ids in a bitmap: 32 cache lines each.
const COUNTERS: u64 = 2 * 32 * 64;

#[test]
fn bitmap_reports_its_heap_memory_and_lookups_do_not_allocate() {
    // Nothing, dense ids, sparse ids, and ids that are far apart.
    for (count, gap) in [(0, 1), (200_000, 1), (30_000, 100), (5_000, 1 << 40)] {
        for compact in [false, true] {
            let fill = || {
                let bitmap = Bitmap::new();
                (0..count).for_each(|n| _ = bitmap.insert_id(n * gap));
                if compact {
                    bitmap.compact();
                }
                // Lookups allocate nothing, except once per thread.
                let answers = allocation_counter::measure(|| {
                    assert!((0..count).all(|n| bitmap.contains_id(n * gap)));
                });
                assert_eq!(answers.count_total, 0);
                bitmap
            };
            // The first use in a thread allocates thread-local memory.
            drop(fill());
            let (heap, reported) = measured(fill, Bitmap::bytes);
            assert_eq!(heap, reported + COUNTERS, "{count} {gap} {compact}");
        }
    }
}

#[test]
fn exact_set_reports_its_heap_memory() {
    for count in [0, 1, 9, 5_000_u64] {
        let fill = || {
            let set = ExactSet::new();
            (0..count).for_each(|n| _ = set.insert(n.to_string().as_bytes()));
            set
        };
        drop(fill());
        let (heap, reported) = measured(fill, ExactSet::bytes);
        assert_eq!(heap, reported, "{count}");
    }
}
