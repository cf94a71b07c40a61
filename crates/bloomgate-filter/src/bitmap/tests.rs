//! Tests of the bitmap.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;

use super::snapshot_view::{BitmapBuilder, ChunkView};
use super::*;
use crate::membership::{Family, Membership};

/// Ids at the ends of the unsigned range, the signed range, and chunks.
const CORNERS: [u64; 10] = [
    0,
    1,
    65_535,
    65_536,
    131_071,
    i64::MAX as u64,
    i64::MIN as u64,
    u64::MAX - 65_536,
    u64::MAX - 65_535,
    u64::MAX,
];

/// The ids of a snapshot view, in its order.
fn snapshot_ids(bitmap: &Bitmap) -> Vec<u64> {
    let mut ids = Vec::new();
    for (chunk, stored) in bitmap.snapshot_view().chunks() {
        let first = chunk << 16;
        match stored {
            ChunkView::Array(positions) => {
                ids.extend(positions.iter().map(|&position| first | u64::from(position)));
            }
            ChunkView::Page(words) => {
                for (word, mut bits) in (0..).zip(*words) {
                    while bits != 0 {
                        ids.push(first | word << 6 | u64::from(bits.trailing_zeros()));
                        bits &= bits - 1;
                    }
                }
            }
        }
    }
    ids
}

fn bitmap_of(ids: impl IntoIterator<Item = u64>) -> Bitmap {
    let bitmap = Bitmap::new();
    for id in ids {
        bitmap.insert_id(id);
    }
    bitmap
}

/// A bitmap loaded from one chunk with `count` ids from `first` on.
fn loaded(first: u64, count: u16) -> Bitmap {
    let start = first as u16;
    let positions: Vec<u16> = (start..start + count).collect();
    let mut builder = BitmapBuilder::default();
    assert!(builder.push_array(first >> 16, &positions));
    builder.finish(0, false)
}

/// A bitmap with one page, which holds the ids 0 to 4096.
fn paged() -> Bitmap {
    let bitmap = loaded(0, 4_096);
    bitmap.insert_id(4_096);
    bitmap.compact();
    bitmap
}

#[test]
fn case_01_empty_bitmap_contains_nothing_and_accepts_a_first_id() {
    for id in CORNERS {
        let bitmap = Bitmap::default();
        assert!(bitmap.is_empty() && CORNERS.iter().all(|&id| !bitmap.contains_id(id)));
        let stats = bitmap.stats();
        assert_eq!((stats.items, stats.distinct, stats.fill_ratio), (0, Some(0), 0.0));
        assert!(bitmap.insert_id(id));
        assert!(!bitmap.insert_id(id));
        bitmap.compact();
        assert!(!bitmap.insert_id(id));
        assert!(CORNERS.iter().all(|&other| bitmap.contains_id(other) == (other == id)));
        assert!(!bitmap.is_empty());
        let stats = bitmap.stats();
        assert_eq!((stats.items, stats.distinct, stats.fill_ratio), (3, Some(1), 1.0));
        assert_eq!((stats.capacity, stats.hashes), (None, 0));
        assert_eq!(stats.expected_false_positive_rate, 0.0);
        assert_eq!(stats.current_false_positive_rate, 0.0);
    }
}

#[test]
fn bitmap_keys_are_little_endian_integers() {
    let bitmap = Bitmap::new();
    assert!(bitmap.insert(&(-2_i64).to_le_bytes()));
    assert!(bitmap.contains_id(u64::MAX - 1));
    assert!(bitmap.contains(&(u64::MAX - 1).to_le_bytes()));
    assert!(!bitmap.contains(&2_i64.to_le_bytes()));
}

#[test]
fn ranges_of_every_length_contain_exactly_their_ids() {
    let max = if cfg!(miri) { 40 } else { 2049 };
    // From 0, around the end of the range, around the smallest signed number, across a chunk
    // boundary.
    for first in [0, u64::MAX - 999, i64::MIN as u64 - 1_000, 65_536 - 7] {
        let bitmap = Bitmap::new();
        for count in 1..=max {
            let last = first.wrapping_add(count - 1);
            assert!(bitmap.insert_id(last));
            assert!(bitmap.contains_id(first) && bitmap.contains_id(last));
            assert!(!bitmap.contains_id(first.wrapping_sub(1)));
            assert!(!bitmap.contains_id(last.wrapping_add(1)));
            assert_eq!(bitmap.len(), count);
            if count % 16 == 0 {
                assert!((0..count).all(|n| bitmap.contains_id(first.wrapping_add(n))), "{count}");
            }
        }
        let mut expected: Vec<_> = (0..max).map(|n| first.wrapping_add(n)).collect();
        expected.sort_unstable();
        assert_eq!(snapshot_ids(&bitmap), expected);
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many ids")]
fn array_becomes_a_page_above_4096_ids_without_loss() {
    for (count, page) in [(4095, false), (4096, false), (4097, true), (4098, true)] {
        // Every third id, so that a page isn't full.
        let bitmap = bitmap_of((0..count).map(|n| n * 3));
        let chunks: Vec<_> = bitmap.snapshot_view().chunks().map(|(number, _)| number).collect();
        assert_eq!(chunks, [0]);
        let stored = bitmap.snapshot_view();
        let is_page = stored.chunks().all(|(_, chunk)| matches!(chunk, ChunkView::Page(_)));
        assert_eq!(is_page, page, "{count}");
        assert_eq!(snapshot_ids(&bitmap), (0..count).map(|n| n * 3).collect::<Vec<_>>());
        assert!((0..count * 3).all(|id| bitmap.contains_id(id) == (id % 3 == 0)));
        let slots = if page { 65_536.0 } else { count as f64 };
        assert_eq!(bitmap.stats().fill_ratio, count as f64 / slots);
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many ids")]
fn page_inserts_in_place_and_counts_each_id_once() {
    let bitmap = bitmap_of(0..5_000);
    bitmap.compact();
    let bytes = bitmap.bytes();
    assert!((5_000..65_536).all(|id| bitmap.insert_id(id)));
    assert!((0..65_536).all(|id| !bitmap.insert_id(id)));
    assert_eq!((bitmap.len(), bitmap.bytes()), (65_536, bytes));
    assert_eq!(bitmap.stats().items, 5_000 + 2 * 65_536 - 5_000);
    assert_eq!(bitmap.stats().fill_ratio, 1.0);
    assert!(!bitmap.contains_id(65_536));
}

#[test]
fn page_insert_through_a_replaced_state_reaches_the_published_state() {
    let bitmap = paged();
    let old = bitmap.state.load_full();
    // A new base is published while the old state is still in use.
    bitmap.insert_id(70_000);
    bitmap.compact();
    assert!(!Arc::ptr_eq(&old, &bitmap.state.load_full()));
    assert_eq!(old.insert_in_place(60_000), Some(true));
    assert!(bitmap.contains_id(60_000));
    bitmap.merge(&loaded(1 << 40, 9));
    assert_eq!(old.insert_in_place(60_001), Some(true));
    assert!(bitmap.contains_id(60_001));
}

#[test]
fn replaced_state_without_the_page_defers_to_the_published_state() {
    let bitmap = loaded(0, 4_096);
    let old = bitmap.state.load_full();
    bitmap.insert_id(4_096);
    bitmap.compact();
    assert_eq!(old.insert_in_place(5_000), None);
    assert!(bitmap.add_under_lock(5_000));
    assert!(bitmap.contains_id(5_000) && !old.contains(5_000));
    // The overlay is empty: the id is in the page.
    assert_eq!(snapshot_ids(&bitmap).last(), Some(&5_000));
    assert!(!bitmap.add_under_lock(5_000));
}

#[test]
fn ids_are_found_in_the_overlay_and_after_compaction() {
    let bitmap = Bitmap::new();
    let ids: Vec<u64> = (0..if cfg!(miri) { 100 } else { 10_000 }).map(|n| n * 9_973).collect();
    for (at, &id) in ids.iter().enumerate() {
        assert!(bitmap.insert_id(id));
        assert!(!bitmap.insert_id(id));
        assert!(
            bitmap.contains_id(id)
                && bitmap.contains_id(ids[at / 2])
                && !bitmap.contains_id(id + 1)
        );
    }
    assert!(ids.iter().all(|&id| bitmap.contains_id(id)));
    // Without `compact`, most ids have been sorted in.
    assert!(cfg!(miri) || bitmap.stats().fill_ratio > 0.6, "{:?}", bitmap.stats());
    bitmap.compact();
    assert_eq!(bitmap.stats().fill_ratio, 1.0);
    assert!(ids.iter().all(|&id| bitmap.contains_id(id) && !bitmap.contains_id(id + 1)));
    assert_eq!(bitmap.len(), ids.len() as u64);
}

#[test]
#[cfg_attr(miri, ignore = "too many ids")]
fn merge_unites_every_pair_of_storage_kinds() {
    // For each side: empty, an overlay, an array, a page.
    let sides = |offset: u64| {
        let array = loaded(offset, 3_000);
        let page = bitmap_of((0..5_000).map(|n| n * 2 + offset));
        page.compact();
        [Bitmap::new(), bitmap_of([offset, offset + 8]), array, page]
    };
    for left in 0..4 {
        for (right, other) in sides(900).iter().enumerate() {
            let (own, others) = (&sides(100)[left], snapshot_ids(other));
            let expected: BTreeSet<_> =
                snapshot_ids(own).into_iter().chain(others.clone()).collect();
            own.merge(other);
            assert_eq!(own.len(), expected.len() as u64, "{left} {right}");
            assert!(expected.iter().all(|&id| own.contains_id(id)), "{left} {right}");
            assert_eq!(snapshot_ids(own), expected.into_iter().collect::<Vec<_>>());
            // The other set is unchanged, and the two don't share pages.
            own.insert_id(60_000);
            assert_eq!(snapshot_ids(other), others);
            assert_eq!(other.len(), others.len() as u64);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many ids")]
fn bitmap_merged_into_itself_is_unchanged() {
    let bitmap = bitmap_of((0..6_000).chain([u64::MAX]));
    bitmap.merge(&bitmap);
    assert_eq!(bitmap.len(), 6_001);
    assert_eq!(snapshot_ids(&bitmap), (0..6_000).chain([u64::MAX]).collect::<Vec<_>>());
}

#[test]
fn every_non_integer_key_is_reported_present_after_one_was_inserted() {
    let non_integers: [&[u8]; 4] = [b"", b"1234567", b"123456789", &[0; 16]];
    for key in non_integers {
        let bitmap = bitmap_of([5]);
        assert!(non_integers.iter().all(|key| !bitmap.contains(key)));
        assert!(bitmap.insert(key));
        assert!(!bitmap.insert(key));
        assert!(
            bitmap.has_non_integer_keys() && non_integers.iter().all(|key| bitmap.contains(key))
        );
        // Integers remain exact.
        assert!(bitmap.contains_id(5) && !bitmap.contains_id(6));
        assert_eq!((bitmap.len(), bitmap.stats().items), (1, 3));
        let other = Bitmap::new();
        other.merge(&bitmap);
        assert!(other.contains(key));
    }
    let bitmap = Bitmap::new();
    bitmap.insert_many(&[b"text"]);
    assert!(bitmap.contains(b"other") && !bitmap.is_empty());
    assert!(BitmapBuilder::default().finish(0, true).contains(b"text"));
}

#[test]
fn set_works_as_a_membership_trait_object() {
    let set: Arc<dyn Membership> = Arc::new(Bitmap::new());
    let keys = [1_u64, 2, u64::MAX].map(u64::to_le_bytes);
    assert!(set.insert(&keys[0]));
    set.insert_many(&[&keys[1], &keys[1]]);
    let mut answers = vec![true; 9];
    set.contains_many(&[&keys[0], &keys[2], &keys[1], b"text"], &mut answers);
    assert_eq!(answers, [true, false, true, false]);
    assert_eq!(
        (set.family(), set.stats().distinct, set.stats().items),
        (Family::Bitmap, Some(2), 3)
    );
    assert!(format!("{set:?}").contains("distinct: Some(2)"));
}

#[test]
#[cfg_attr(miri, ignore = "too many ids")]
fn planned_bytes_of_dense_ids_match_their_memory() {
    for count in [0, 1, 1_000, 4_096, 4_097, 65_536, 65_537, 70_000, 1_000_000] {
        let set = Bitmap::new();
        (0..count).for_each(|id| _ = set.insert_id(id));
        set.compact();
        let (planned, actual) = (Bitmap::planned_bytes(count) as f64, set.bytes() as f64);
        assert!((planned - actual).abs() <= 0.01 * actual + 32.0, "{count}: {planned}, {actual}");
    }
    assert!(Bitmap::planned_bytes(u64::MAX) > u128::from(u64::MAX) / 8);
}

#[test]
#[cfg_attr(miri, ignore = "too many ids")]
fn bitmap_memory_matches_the_documented_bits_per_id() {
    let bits = |count: u64, id: fn(u64) -> u64| {
        let bitmap = bitmap_of((0..count).map(id));
        bitmap.compact();
        assert_eq!(bitmap.len(), count);
        (bitmap.bytes() * 8) as f64 / count as f64
    };
    // On both sides of 0, in whole chunks.
    let dense = bits(1 << 18, |n| n.wrapping_sub(1 << 17));
    assert!(dense < 1.01, "{dense}");
    let gaps = bits(100_000, |n| n * 100);
    assert!((16.0..17.0).contains(&gaps), "{gaps}");
    let one_a_chunk = bits(50_000, |n| n << 16);
    assert!((80.0..81.0).contains(&one_a_chunk), "{one_a_chunk}");
    let one_in_four_chunks = bits(50_000, |n| n << 18);
    assert!((272.0..273.0).contains(&one_in_four_chunks), "{one_in_four_chunks}");
    let far_apart = bits(50_000, |n| n << 32);
    assert!((144.0..145.0).contains(&far_apart), "{far_apart}");
}

#[test]
#[cfg_attr(miri, ignore = "too many ids")]
fn a_million_dense_ids_take_at_most_1_2_bits_each_before_compaction() {
    let bitmap = bitmap_of(1..=1_000_000);
    assert!(bitmap.bytes() * 8 < 1_200_000, "{}", bitmap.bytes());
    bitmap.compact();
    assert!(bitmap.bytes() * 8 < 1_060_000, "{}", bitmap.bytes());
}

#[test]
fn case_10_bitmap_builder_refuses_invalid_chunks() {
    let ascending: Vec<u16> = (0..=4_096).collect();
    let words = |count: usize| {
        let mut words = [0; 1024];
        (0..count).for_each(|at| words[at / 64] |= 1 << (at % 64));
        words
    };
    let mut builder = BitmapBuilder::default();
    assert!(!builder.push_array(5, &[]));
    assert!(!builder.push_array(5, &[2, 2]));
    assert!(!builder.push_array(5, &[2, 1]));
    assert!(!builder.push_array(5, &ascending));
    assert!(!builder.push_array(1 << 48, &[1]));
    assert!(!builder.push_page(5, &words(4_096)));
    assert!(!builder.push_page(1 << 48, &words(5_000)));
    assert!(builder.push_array(5, &ascending[..4_096]));
    for chunk in [0, 4, 5] {
        assert!(!builder.push_array(chunk, &[1]));
        assert!(!builder.push_page(chunk, &words(5_000)));
    }
    assert!(builder.push_page(6, &words(4_097)));
    assert!(!builder.push_array(6, &[1]));
    assert!(builder.push_array((1 << 48) - 1, &[65_535]));
    assert!(!builder.push_array(u64::MAX, &[1]));
    let bitmap = builder.finish(0, false);
    assert_eq!(bitmap.len(), 4_096 + 4_097 + 1);
    assert_eq!(snapshot_ids(&bitmap).len(), 4_096 + 4_097 + 1);
    assert!(
        bitmap.contains_id(u64::MAX)
            && bitmap.contains_id(5 << 16)
            && !bitmap.has_non_integer_keys()
    );
}

const THREADS: u64 = if cfg!(miri) { 3 } else { 16 };

/// `THREADS` threads insert `each` ids into `bitmap` and publish their progress, two readers check
/// that published ids are present, and one thread compacts repeatedly.
fn insert_read_and_compact(bitmap: &Bitmap, each: u64, id: impl Fn(u64) -> u64 + Sync) {
    let before = bitmap.len();
    let published: Vec<_> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    let counts = || published.iter().map(|count| count.load(Ordering::Acquire)).collect::<Vec<_>>();
    let barrier = Barrier::new(THREADS as usize + 3);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (published, id, barrier) = (&published[thread as usize], &id, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for n in 0..each {
                    assert!(bitmap.insert_id(id(n * THREADS + thread)));
                    published.store(n + 1, Ordering::Release);
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                barrier.wait();
                for round in 0.. {
                    let seen = counts();
                    for (thread, &count) in (0..).zip(&seen).filter(|(_, count)| **count > 0) {
                        for n in [count - 1, round % count] {
                            assert!(bitmap.contains_id(id(n * THREADS + thread)), "{n} {thread}");
                        }
                    }
                    if seen.iter().all(|&count| count == each) {
                        break;
                    }
                    thread::yield_now();
                }
            });
        }
        scope.spawn(|| {
            barrier.wait();
            while counts().iter().any(|&count| count < each) {
                bitmap.compact();
                thread::yield_now();
            }
        });
    });
    assert!((0..THREADS * each).all(|n| bitmap.contains_id(id(n))));
    assert_eq!(bitmap.len(), before + THREADS * each);
    assert_eq!(snapshot_ids(bitmap).len() as u64, bitmap.len());
}

#[test]
fn case_11_inserted_ids_stay_visible_while_arrays_become_pages() {
    let few = cfg!(miri);
    // Fills one chunk after another, each from the overlay to an array to a page.
    let (bitmap, each) = if few { (loaded(0, 4_090), 8) } else { (Bitmap::new(), 6_000) };
    let first = if few { 4_090 } else { 0 };
    insert_read_and_compact(&bitmap, each, |n| first + n);
}

#[test]
fn case_11_inserted_ids_stay_visible_while_the_overlay_is_merged() {
    let each = if cfg!(miri) { 8 } else { 1_000 };
    insert_read_and_compact(&Bitmap::new(), each, |n| n * 1_000);
    insert_read_and_compact(&Bitmap::new(), each, |n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
}

#[test]
fn case_11_inserted_ids_stay_visible_during_merges() {
    let each = if cfg!(miri) { 8 } else { 1_000 };
    // Inserts into a chunk that is a page in `other` and initially empty in this bitmap.
    let (bitmap, id) = (Bitmap::new(), |n| 5_000 + n * 13);
    let (done, published) = (AtomicBool::new(false), AtomicU64::new(0));
    let other = paged();
    (1..=5).for_each(|n| _ = other.insert_id(n << 30));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                bitmap.merge(&other);
                other.merge(&bitmap);
                thread::yield_now();
            }
        });
        scope.spawn(|| {
            for n in 0..each {
                bitmap.insert_id(id(n));
                published.store(n + 1, Ordering::Release);
            }
        });
        let mut seen = 0;
        while seen < each {
            seen = published.load(Ordering::Acquire);
            assert!((seen.saturating_sub(9)..seen).all(|n| bitmap.contains_id(id(n))));
            thread::yield_now();
        }
        done.store(true, Ordering::Release);
    });
    bitmap.merge(&other);
    assert_eq!(snapshot_ids(&bitmap).len() as u64, bitmap.len());
    assert_eq!(snapshot_ids(&other).len() as u64, other.len());
    assert_eq!(bitmap.len(), 4_097 + 5 + each);
}

#[test]
fn case_11_concurrent_inserts_of_one_id_return_true_exactly_once() {
    let bitmap = Bitmap::new();
    let barrier = Barrier::new(THREADS as usize);
    // Dense ids, which pass through overlay, array and page, then sparse ones.
    let (dense, sparse) = if cfg!(miri) { (10, 10) } else { (6_000, 1_500) };
    let ids: Vec<u64> = (0..dense).chain((1..=sparse).map(|n| n << 20)).collect();
    let new: Vec<u64> = thread::scope(|scope| {
        let work = || {
            barrier.wait();
            ids.iter().filter(|&&id| bitmap.insert_id(id)).count() as u64
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(new.iter().sum::<u64>(), ids.len() as u64);
    assert_eq!(bitmap.len(), ids.len() as u64);
    assert_eq!(bitmap.stats().items, THREADS * ids.len() as u64);
    assert_eq!(snapshot_ids(&bitmap), ids);
}

#[test]
fn lookups_and_page_inserts_do_not_wait_for_the_write_lock() {
    let bitmap = Arc::new(paged());
    bitmap.insert_id(1 << 30);
    let lock = bitmap.write_lock();
    let reader = Arc::clone(&bitmap);
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut answers = Vec::new();
        reader.contains_many(&[7, 1 << 30, 1 << 31].map(u64::to_le_bytes), &mut answers);
        answers.push(reader.insert_id(6_000));
        answers.push(reader.contains_id(6_000));
        // Inserting a present id again needs no lock.
        answers.push(reader.insert_id(1 << 30));
        send.send((answers, reader.len(), reader.stats().items)).unwrap();
    });
    // The timeout only ends a failed test.
    let (answers, len, items) = receive.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(answers, [true, true, false, true, true, false]);
    assert_eq!((len, items), (4_099, 4_100));
    drop(lock);
}

#[test]
fn a_panicked_writer_does_not_block_later_inserts() {
    let bitmap = Bitmap::new();
    let panicked = thread::scope(|scope| {
        let work = || {
            let _lock = bitmap.write_lock();
            panic!("panic under the lock");
        };
        scope.spawn(work).join().is_err()
    });
    assert!(panicked);
    assert!(bitmap.insert_id(1) && bitmap.contains_id(1));
}

/// An operation on a bitmap.
#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    /// First id, count, gap, and whether they are inserted as one batch.
    InsertMany(u64, u64, u64, bool),
    Merge(Vec<u64>),
    MergeRange(u64, u64),
    Compact,
    StoreAndLoad,
}

/// Ids that often share a chunk, close to the corners.
fn id() -> impl Strategy<Value = u64> {
    let near = (prop::sample::select(&CORNERS[..]), -40_i64..40);
    prop_oneof![
        4 => near.prop_map(|(corner, off)| corner.wrapping_add_signed(off)),
        1 => any::<u64>(),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => id().prop_map(Step::Insert),
        3 => (id(), 1_u64..5_000, prop::sample::select(vec![1, 2, 13, 1_000, 1 << 33]), any::<bool>())
            .prop_map(|(first, count, gap, batched)| Step::InsertMany(first, count, gap, batched)),
        1 => prop::collection::vec(id(), 0..20).prop_map(Step::Merge),
        1 => (id(), 1_u64..9_000).prop_map(|(first, count)| Step::MergeRange(first, count)),
        1 => Just(Step::Compact),
        1 => Just(Step::StoreAndLoad),
    ]
}

fn stored_and_loaded(bitmap: &Bitmap) -> Bitmap {
    let mut builder = BitmapBuilder::default();
    for (number, chunk) in bitmap.snapshot_view().chunks() {
        assert!(match chunk {
            ChunkView::Array(positions) => builder.push_array(number, positions),
            ChunkView::Page(words) => builder.push_page(number, &words),
        });
    }
    builder.finish(bitmap.stats().items, bitmap.has_non_integer_keys())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    #[cfg_attr(miri, ignore = "too many ids")]
    fn bitmap_operations_agree_with_a_btree_set(steps in prop::collection::vec(step(), 1..24), probes in prop::collection::vec(id(), 40)) {
        let (mut bitmap, mut model) = (Bitmap::new(), BTreeSet::new());
        for step in steps {
            match step {
                Step::Insert(id) => {
                    prop_assert_eq!(bitmap.insert_id(id), model.insert(id));
                    prop_assert!(bitmap.contains_id(id));
                }
                Step::InsertMany(first, count, gap, batched) => {
                    let ids = (0..count).map(|n| first.wrapping_add(n.wrapping_mul(gap)));
                    if batched {
                        bitmap.insert_many(&ids.clone().map(u64::to_le_bytes).collect::<Vec<_>>());
                        model.extend(ids.clone());
                    } else {
                        for id in ids.clone() {
                            prop_assert_eq!(bitmap.insert_id(id), model.insert(id));
                        }
                    }
                    prop_assert!(ids.into_iter().all(|id| bitmap.contains_id(id)));
                }
                Step::Merge(ids) => {
                    bitmap.merge(&bitmap_of(ids.iter().copied()));
                    model.extend(ids);
                }
                Step::MergeRange(first, count) => {
                    let ids = (0..count).map(|n| first.wrapping_add(n));
                    bitmap.merge(&bitmap_of(ids.clone()));
                    model.extend(ids);
                }
                Step::Compact => bitmap.compact(),
                Step::StoreAndLoad => bitmap = stored_and_loaded(&bitmap),
            }
            prop_assert_eq!(bitmap.len(), model.len() as u64);
            for id in probes.iter().chain(&CORNERS) {
                prop_assert_eq!(bitmap.contains_id(*id), model.contains(id), "{}", id);
            }
            let stats = bitmap.stats();
            prop_assert!((0.0..=1.0).contains(&stats.fill_ratio));
        }
        let mut answers = Vec::new();
        bitmap.contains_many(&probes.iter().map(|id| id.to_le_bytes()).collect::<Vec<_>>(), &mut answers);
        prop_assert_eq!(answers, probes.iter().map(|id| model.contains(id)).collect::<Vec<_>>());
        prop_assert_eq!(snapshot_ids(&bitmap), model.into_iter().collect::<Vec<_>>());
    }
}
