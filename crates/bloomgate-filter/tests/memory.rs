//! `bytes()` of the exact families against what the allocator was really asked for.

#![expect(clippy::unwrap_used, reason = "what goes wrong fails the test")]

use bloomgate_filter::{Bitmap, ExactSet};

/// What `fill` leaves on the heap, and what the set it made says of itself.
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
                // Readers leave nothing behind but what they allocate once a thread.
                let answers = allocation_counter::measure(|| {
                    assert!((0..count).all(|n| bitmap.contains_id(n * gap)));
                });
                assert_eq!(answers.count_total, 0);
                bitmap
            };
            // The first use in a thread allocates what the thread keeps.
            drop(fill());
            let (heap, told) = measured(fill, Bitmap::bytes);
            assert_eq!(heap, told + COUNTERS, "{count} {gap} {compact}");
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
        let (heap, told) = measured(fill, ExactSet::bytes);
        assert_eq!(heap, told, "{count}");
    }
}
