//! Tests of the classic Bloom filter.

use std::sync::Barrier;
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::hash::{HashAlgorithm, Secret};
use crate::sizing::FalsePositiveRate;

const HASHES: [HashAlgorithm; 2] = [HashAlgorithm::SipHash13, HashAlgorithm::Xxh3];

fn hasher(hash: HashAlgorithm, secret: u8, nonce: u8) -> KeyedHasher {
    KeyedHasher::new(hash, &Secret::new(&[secret; 32]).unwrap(), &[nonce; 16])
}

fn params(items: u64, rate: f64) -> ClassicParams {
    ClassicParams::new(items, FalsePositiveRate::new(rate).unwrap()).unwrap()
}

fn filter(items: u64, rate: f64, hash: HashAlgorithm) -> ClassicBloom {
    ClassicBloom::new(params(items, rate), hasher(hash, 1, 2)).unwrap()
}

/// The share of set bits, counted over the whole filter.
fn counted_fill(filter: &ClassicBloom) -> f64 {
    let set: u64 = filter.words().map(|word| u64::from(word.count_ones())).sum();
    set as f64 / filter.params().bits() as f64
}

/// How many of `probes` pass.
fn passing<K: AsRef<[u8]>>(filter: &ClassicBloom, probes: impl Iterator<Item = K>) -> u64 {
    probes.filter(|key| filter.contains(key.as_ref())).count() as u64
}

#[test]
fn case_01_filter_for_zero_items_works() {
    for hash in HASHES {
        let filter = filter(0, 0.01, hash);
        assert_eq!(passing(&filter, (0..10_000).map(u64::to_le_bytes)), 0);
        assert!(filter.insert(b"a"));
        assert!(filter.contains(b"a"));
        assert!(!filter.contains(b"b"));
        assert!(passing(&filter, (0..10_000).map(u64::to_le_bytes)) <= 200);
        let stats = filter.stats();
        assert_eq!((stats.items, stats.capacity, stats.bytes), (1, Some(0), 8));
        assert_eq!(stats.expected_false_positive_rate, 0.0);
    }
}

#[test]
#[ignore = "forty million probes: seconds in release, a minute in debug"]
fn deep_case_04_classic_filter_holds_a_rate_of_one_in_a_million() {
    const PROBES: u64 = 20_000_000;
    for hash in HASHES {
        let filter = filter(100_000, 1e-6, hash);
        for n in 0..100_000_u64 {
            filter.insert(&n.to_le_bytes());
        }
        let passed = passing(&filter, (1 << 32..(1 << 32) + PROBES).map(u64::to_le_bytes));
        assert!(passed <= 40, "{} {passed}", hash.name());
    }
}

#[test]
fn case_05_filter_of_one_key_contains_only_that_key() {
    for hash in HASHES {
        let filter = filter(1, 1e-9, hash);
        filter.insert(&0_u64.to_le_bytes());
        assert!(passing(&filter, (1..=1_000_000).map(u64::to_le_bytes)) <= 1);
    }
}

#[test]
fn case_06_saturated_filter_reports_rate_1_and_unknown_count() {
    // 96 bits: the last word has spare bits, which must not count as unset.
    let filter = filter(10, 0.01, HashAlgorithm::Xxh3);
    assert_eq!(filter.params().bits(), 96);
    for n in 0..2_000_u64 {
        filter.insert(&n.to_le_bytes());
    }
    let stats = filter.stats();
    assert_eq!((stats.fill_ratio, stats.current_false_positive_rate), (1.0, 1.0));
    assert_eq!(stats.distinct, None);
    assert!(!filter.insert(b"never inserted"));
    assert_eq!(filter.words().collect::<Vec<_>>(), [u64::MAX, u64::MAX >> 32]);
}

#[test]
fn case_06_sampled_fill_ratio_agrees_with_the_full_count() {
    let params = params(1_000_000, 0.01);
    // One word in ten is sampled.
    let step = params.words().div_ceil(MAX_SAMPLED_WORDS as u64);
    assert_eq!((step, params.words().div_ceil(step)), (10, 14_977));

    let filter = ClassicBloom::new(params, hasher(HashAlgorithm::Xxh3, 1, 2)).unwrap();
    let mut before = 0.0;
    for step in 0..4_u64 {
        for n in step * 20_000..(step + 1) * 20_000 {
            filter.insert(&n.to_le_bytes());
        }
        let (fill, expected) = (filter.stats().fill_ratio, counted_fill(&filter));
        assert!((fill / expected - 1.0).abs() < 0.03, "{fill} for {expected}");
        assert!(fill > before);
        before = fill;
    }
    for word in &filter.words {
        word.store(u64::MAX, Ordering::Relaxed);
    }
    filter.words[params.words() as usize - 1].store(u64::MAX >> 29, Ordering::Relaxed);
    assert_eq!((filter.stats().fill_ratio, filter.stats().distinct), (1.0, None));
}

#[test]
fn case_11_concurrent_inserts_of_sixteen_threads_lose_no_bits() {
    const EACH: u64 = 100;
    const ROUNDS: u64 = 100;
    let keys = |round: u64, thread: u64| {
        let first = (round * 16 + thread) * EACH;
        (first..first + EACH).map(u64::to_le_bytes)
    };
    // Small filters with twice the keys that they are sized for, so that threads often write to the
    // same words.
    let filters: Vec<_> =
        (0..ROUNDS).map(|_| filter(8 * EACH, 0.01, HashAlgorithm::Xxh3)).collect();
    let barrier = Barrier::new(16);
    let unseen = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..16 {
            let (filters, barrier, unseen) = (&filters, &barrier, &unseen);
            scope.spawn(move || {
                for (round, filter) in (0..).zip(filters) {
                    barrier.wait();
                    for key in keys(round, thread) {
                        filter.insert(&key);
                        // Counted, because a panic here would block the other threads at the
                        // barrier.
                        unseen.fetch_add(u64::from(!filter.contains(&key)), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(unseen.into_inner(), 0, "a thread sees its own inserts");
    for (round, shared) in (0..).zip(&filters) {
        let alone = filter(8 * EACH, 0.01, HashAlgorithm::Xxh3);
        for key in (0..16).flat_map(|thread| keys(round, thread)) {
            alone.insert(&key);
            assert!(shared.contains(&key));
        }
        // All bits are equal, also those that no lookup depends on.
        assert!(shared.words().eq(alone.words()));
        assert_eq!(shared.stats().items, 16 * EACH);
    }
}

#[test]
fn merging_two_filters_gives_their_union() {
    let [even, odd, both] = [(); 3].map(|()| filter(2_000, 0.001, HashAlgorithm::SipHash13));
    for n in 0..1_000_u64 {
        if n % 2 == 0 { &even } else { &odd }.insert(&n.to_le_bytes());
        both.insert(&n.to_le_bytes());
    }
    even.merge(&odd).unwrap();
    assert!(even.words().eq(both.words()));
    assert_eq!(even.stats(), both.stats());
    assert_eq!(odd.stats().items, 500);
    assert_eq!(passing(&even, (0..1_000).map(u64::to_le_bytes)), 1_000);
}

#[test]
fn case_11_merge_during_inserts_keeps_earlier_keys_of_both_filters() {
    let (target, source) =
        (filter(20_000, 0.01, HashAlgorithm::Xxh3), filter(20_000, 0.01, HashAlgorithm::Xxh3));
    (0..5_000_u64).for_each(|n| _ = source.insert(&n.to_le_bytes()));
    thread::scope(|scope| {
        scope.spawn(|| (5_000..10_000_u64).for_each(|n| _ = source.insert(&n.to_le_bytes())));
        scope.spawn(|| (10_000..15_000_u64).for_each(|n| _ = target.insert(&n.to_le_bytes())));
        target.merge(&source).unwrap();
        assert_eq!(passing(&target, (0..5_000).map(u64::to_le_bytes)), 5_000);
    });
    assert_eq!(passing(&target, (10_000..15_000).map(u64::to_le_bytes)), 5_000);
}

#[test]
fn merge_refuses_other_parameters_or_hashers_and_changes_nothing() {
    for (hash, other_hash) in [(HASHES[0], HASHES[1]), (HASHES[1], HASHES[0])] {
        let target = filter(100, 0.01, hash);
        target.insert(b"a");
        let (words, stats) = (target.words().collect::<Vec<_>>(), target.stats());
        for (params, hasher, field) in [
            (params(101, 0.01), hasher(hash, 1, 2), "params"),
            (params(100, 0.001), hasher(hash, 1, 2), "params"),
            (params(100, 0.01), hasher(other_hash, 1, 2), "hasher"),
            (params(100, 0.01), hasher(hash, 9, 2), "hasher"),
            (params(100, 0.01), hasher(hash, 1, 9), "hasher"),
        ] {
            let other = ClassicBloom::new(params, hasher).unwrap();
            (0..50_u64).for_each(|n| _ = other.insert(&n.to_le_bytes()));
            assert_eq!(target.merge(&other), Err(Error::Mismatch { field }));
            assert!(target.words().eq(words.iter().copied()));
            assert_eq!(target.stats(), stats);
        }
    }
}

#[test]
fn case_07_filter_restored_from_its_words_is_identical() {
    for hash in HASHES {
        let original = filter(1_000, 0.01, hash);
        (0..1_000_u64).for_each(|n| _ = original.insert(&n.to_le_bytes()));
        let words = original.words().collect();
        let copy =
            ClassicBloom::from_words(*original.params(), hasher(hash, 1, 2), 1_000, words).unwrap();
        assert_eq!(copy.stats(), original.stats());
        assert_eq!(passing(&copy, (0..1_000).map(u64::to_le_bytes)), 1_000);
        assert!(!copy.insert(&5_u64.to_le_bytes()));
    }
}

#[test]
fn case_10_words_that_contradict_the_parameters_are_refused() {
    let params = params(10, 0.01);
    let from = |words: &[u64]| {
        ClassicBloom::from_words(params, hasher(HashAlgorithm::Xxh3, 1, 2), 0, words.to_vec())
            .is_some()
    };
    assert_eq!(params.bits(), 96);
    assert!(from(&[0, 0]) && from(&[u64::MAX, u64::MAX >> 32]));
    for words in [&[][..], &[0], &[0, 0, 0], &[0, 1 << 32], &[0, 1 << 63]] {
        assert!(!from(words), "{words:?}");
    }
    // Parameters whose bits fill their words, and ones that exceed any memory.
    let rate = FalsePositiveRate::new(0.01).unwrap();
    let full = ClassicParams::stored(1, rate, 64, 1).unwrap();
    let huge = ClassicParams::stored(1, rate, u64::MAX, 1).unwrap();
    let from = |params| {
        ClassicBloom::from_words(params, hasher(HashAlgorithm::Xxh3, 1, 2), 0, vec![u64::MAX])
    };
    assert!(from(full).is_some() && from(huge).is_none());
}

#[test]
fn refused_allocation_is_an_error() {
    let params = params(1 << 58, 0.6);
    let error = ClassicBloom::new(params, hasher(HashAlgorithm::Xxh3, 1, 1)).unwrap_err();
    assert_eq!(error, Error::OutOfMemory { bytes: params.bytes() });
}

#[test]
fn filter_works_as_a_membership_trait_object() {
    let filter: Box<dyn Membership> = Box::new(filter(10, 0.01, HashAlgorithm::SipHash13));
    assert!(!filter.contains(b"a"));
    assert!(filter.insert(b"a"));
    filter.insert_many(&[b"b", b"c"]);
    let mut answers = vec![true; 9];
    filter.contains_many(&[b"a", b"absent", b"c"], &mut answers);
    assert_eq!(answers, [true, false, true]);
    let stats = filter.stats();
    assert_eq!((stats.items, stats.hashes, filter.family()), (3, 7, Family::Classic));
    assert!(format!("{filter:?}").contains("redacted"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn inserted_keys_are_always_found(
        keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..100),
        items in 0_u64..300,
        rate in 1e-9..0.999,
        xxh3: bool,
    ) {
        let filter = filter(items, rate, HASHES[usize::from(xxh3)]);
        for (at, key) in keys.iter().enumerate() {
            filter.insert(key);
            prop_assert!(keys[..=at].iter().all(|key| filter.contains(key)));
        }
        prop_assert!(keys.iter().all(|key| filter.contains_hash(filter.hash(key))));
        let stats = filter.stats();
        prop_assert_eq!((stats.items, stats.fill_ratio), (keys.len() as u64, counted_fill(&filter)));
        prop_assert!((0.0..=1.0).contains(&stats.current_false_positive_rate));
    }
}
