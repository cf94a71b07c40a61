//! Tests of the Bloom filter.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::hash::{HashAlgorithm, Secret};
use crate::sizing::FalsePositiveRate;

const HASHES: [HashAlgorithm; 3] = HashAlgorithm::ALL;

fn hasher(hash: HashAlgorithm, secret: u8, nonce: u8) -> KeyedHasher {
    KeyedHasher::new(hash, &Secret::new(&[secret; 32]).unwrap(), &[nonce; 16])
}

fn params(items: u64, rate: f64) -> BloomParams {
    BloomParams::new(items, FalsePositiveRate::new(rate).unwrap()).unwrap()
}

fn filter(items: u64, rate: f64, hash: HashAlgorithm) -> BloomFilter {
    BloomFilter::new(params(items, rate), hasher(hash, 1, 2)).unwrap()
}

/// The number of set bits, counted over the whole filter.
fn popcount(filter: &BloomFilter) -> u64 {
    words(filter).into_iter().map(|word| u64::from(word.count_ones())).sum()
}

fn words(filter: &BloomFilter) -> Vec<u64> {
    let words = filter.blocks.iter().flat_map(|block| &block.0);
    words.map(|word| word.load(Ordering::Relaxed)).collect()
}

/// How many of `probes` pass.
fn passing<K: AsRef<[u8]>>(filter: &BloomFilter, probes: impl Iterator<Item = K>) -> u64 {
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
        assert_eq!((stats.items, stats.capacity, stats.bytes), (1, Some(0), 64));
        assert_eq!(stats.expected_false_positive_rate, 0.0);
    }
}

#[test]
fn case_05_filter_of_one_key_contains_only_that_key() {
    for hash in HASHES {
        let filter = filter(1, 1e-9, hash);
        filter.insert(&1_u64.to_le_bytes());
        assert_eq!(passing(&filter, (1..=200_000).map(u64::to_le_bytes)), 1);
    }
}

/// Compares measured rates with the model, for several filters at several fill ratios.
#[test]
fn measured_rate_agrees_with_the_model() {
    const PROBES: u64 = 100_000;
    for hash in HASHES {
        for (planned, inserted) in [(2_000, 2_000), (2_000, 4_000), (60, 60), (20, 30)] {
            let (mut passed, mut expected) = (0, 0.0);
            for secret in 0..4 {
                let params = params(planned, 0.05);
                let filter = BloomFilter::new(params, hasher(hash, secret, 0)).unwrap();
                for n in 0..inserted {
                    filter.insert(&u64::to_le_bytes(n));
                }
                passed += passing(&filter, (inserted..inserted + PROBES / 4).map(u64::to_le_bytes));
                expected += params.expected_rate(inserted) * (PROBES / 4) as f64;
            }
            // The rates of small filters vary more between filters than the sample of probes does.
            let slack = 5.0 * expected.sqrt() + expected * 1.2 / (inserted as f64).sqrt();
            let off = (passed as f64 - expected).abs();
            assert!(off < slack, "{} {planned}/{inserted}: {passed} {expected}", hash.name());
        }
    }
}

#[test]
fn case_04_rate_of_one_in_a_million_holds() {
    for hash in HASHES {
        let filter = filter(20_000, 1e-6, hash);
        for n in 0..20_000_u64 {
            filter.insert(&n.to_le_bytes());
        }
        let passed = passing(&filter, (1 << 32..(1 << 32) + 400_000).map(u64::to_le_bytes));
        // The mean is 0.4; one *secret* in 40,000 gives more than 5.
        assert!(passed <= 5, "{} {passed}", hash.name());
    }
}

#[test]
fn case_06_saturated_filter_reports_rate_1_and_unknown_count() {
    let filter = filter(0, 0.01, HashAlgorithm::Xxh3);
    for n in 0..20_000_u64 {
        filter.insert(&n.to_le_bytes());
    }
    let stats = filter.stats();
    assert_eq!((stats.fill_ratio, stats.current_false_positive_rate), (1.0, 1.0));
    assert_eq!(filter.stats().distinct, None);
    assert!(!filter.insert(b"never inserted"));
}

#[test]
fn case_11_concurrent_inserts_of_sixteen_threads_lose_no_bits() {
    const EACH: u64 = 20_000;
    // Sized for half of the keys, so that threads often write to the same words.
    let filter = filter(160_000, 0.01, HashAlgorithm::Xxh3);
    let barrier = Barrier::new(16);
    thread::scope(|scope| {
        for thread in 0..16 {
            let (filter, barrier) = (&filter, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for n in thread * EACH..(thread + 1) * EACH {
                    filter.insert(&n.to_le_bytes());
                    // A thread sees its own inserts.
                    assert!(filter.contains(&n.to_le_bytes()));
                }
            });
        }
    });
    assert_eq!(passing(&filter, (0..16 * EACH).map(u64::to_le_bytes)), 16 * EACH);
    let stats = filter.stats();
    assert_eq!(stats.items, 16 * EACH);
    assert_eq!(stats.fill_ratio, popcount(&filter) as f64 / filter.params().bits() as f64);
}

#[test]
fn refused_allocation_is_an_error() {
    let params = params(1 << 58, 0.5);
    let error = BloomFilter::new(params, hasher(HashAlgorithm::Xxh3, 1, 1)).unwrap_err();
    assert_eq!(error, Error::OutOfMemory { bytes: params.bytes() });
}

#[test]
fn block_is_one_aligned_cache_line() {
    assert_eq!((size_of::<Block>(), align_of::<Block>()), (64, 64));
    let filter = filter(1_000, 0.01, HashAlgorithm::Xxh3);
    assert_eq!(size_of_val(&*filter.blocks) as u64, filter.params().bytes());
}

#[test]
fn filter_works_as_a_membership_trait_object() {
    let filter: Box<dyn Membership> = Box::new(filter(10, 0.01, HashAlgorithm::SipHash13));
    assert!(!filter.contains(b"a"));
    assert!(filter.insert(b"a"));
    assert!(filter.contains(b"a"));
    assert_eq!((filter.stats().items, filter.family()), (1, Family::Bloom));
    assert!(format!("{filter:?}").contains("redacted"));
}

#[test]
fn case_11_keys_are_visible_to_threads_that_observe_their_insert() {
    // The hardest case for the vector load: one block, all bits contended.
    const INSERTS: u64 = if cfg!(miri) { 100 } else { 20_000 };
    let filter = filter(40, 0.01, HashAlgorithm::Xxh3);
    let done = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=INSERTS {
                filter.insert(&n.to_le_bytes());
                done.store(n, Ordering::Release);
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut seen = 0;
                while seen < INSERTS {
                    seen = done.load(Ordering::Acquire);
                    assert!(seen == 0 || filter.contains(&seen.to_le_bytes()), "{seen}");
                }
            });
        }
    });
}

#[test]
fn fill_ratio_of_a_large_filter_is_sampled() {
    let filter = filter(3_000_000, 0.01, HashAlgorithm::Xxh3);
    assert!(filter.blocks.len() < MAX_SAMPLED_BLOCKS, "{}", filter.blocks.len());
    let filter = self::filter(3_000_000, 0.0001, HashAlgorithm::Xxh3);
    assert!(filter.blocks.len() > MAX_SAMPLED_BLOCKS, "{}", filter.blocks.len());
    let mut inserted = 0_u64;
    let mut before = filter.stats();
    for target in [10, 1_000, 100_000, 1_000_000] {
        let keys: Vec<_> = (inserted..target).map(u64::to_le_bytes).collect();
        filter.insert_many(&keys);
        inserted = target;
        let stats = filter.stats();
        assert!(stats.fill_ratio >= before.fill_ratio);
        before = stats;
        let distinct = stats.distinct.unwrap() as f64;
        // Five standard deviations of a sample with this share of the keys.
        let share = MAX_SAMPLED_BLOCKS as f64 / filter.blocks.len() as f64;
        let deviation = ((1.0 - share) / (target as f64 * share)).sqrt() + 0.001;
        assert!((distinct / target as f64 - 1.0).abs() < 5.0 * deviation, "{distinct} {target}");
    }
}

#[test]
fn merging_two_filters_gives_their_union() {
    for hash in HASHES {
        let (one, other) = (filter(1_000, 0.01, hash), filter(1_000, 0.01, hash));
        (0..300_u64).for_each(|n| _ = one.insert(&n.to_le_bytes()));
        (200..500_u64).for_each(|n| _ = other.insert(&n.to_le_bytes()));
        let straight = filter(1_000, 0.01, hash);
        (0..500_u64).for_each(|n| _ = straight.insert(&n.to_le_bytes()));
        one.merge(&other).unwrap();
        assert_eq!(words(&one), words(&straight));
        assert_eq!(one.stats().items, 600);
        assert_eq!(other.stats().items, 300);
    }
}

#[test]
fn merge_refuses_other_parameters_or_hashers_and_changes_nothing() {
    let target = filter(1_000, 0.01, HashAlgorithm::Xxh3);
    target.insert(b"before");
    let (bits, stats) = (words(&target), target.stats());
    for (params, hasher, field) in [
        (params(1_001, 0.01), hasher(HashAlgorithm::Xxh3, 1, 2), "params"),
        (params(1_000, 0.02), hasher(HashAlgorithm::Xxh3, 1, 2), "params"),
        (params(1_000, 0.01), hasher(HashAlgorithm::Aes128, 1, 2), "hasher"),
        (params(1_000, 0.01), hasher(HashAlgorithm::Xxh3, 9, 2), "hasher"),
        (params(1_000, 0.01), hasher(HashAlgorithm::Xxh3, 1, 9), "hasher"),
    ] {
        let other = BloomFilter::new(params, hasher).unwrap();
        other.insert(b"other key");
        assert_eq!(target.merge(&other), Err(Error::Mismatch { field }));
        assert_eq!((words(&target), target.stats()), (bits.clone(), stats));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 64 }))]

    #[test]
    #[cfg_attr(miri, ignore = "too slow")]
    fn batch_calls_agree_with_single_calls(
        inserted in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..150),
        probed in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3), 0..150),
        items in 0_u64..300,
        hash in 0..HASHES.len(),
    ) {
        let (single, batch) = (filter(items, 0.1, HASHES[hash]), filter(items, 0.1, HASHES[hash]));
        inserted.iter().for_each(|key| _ = single.insert(key));
        batch.insert_many(&inserted);
        prop_assert_eq!(words(&single), words(&batch));
        prop_assert_eq!(single.stats(), batch.stats());
        // The previous contents of the vector must be replaced.
        let mut answers = vec![true; 3];
        for keys in [&inserted, &probed] {
            let expected: Vec<_> = keys.iter().map(|key| single.contains(key)).collect();
            batch.contains_many(keys, &mut answers);
            prop_assert_eq!(&answers, &expected);
            let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let object: &dyn Membership = &batch;
            object.contains_many(&slices, &mut answers);
            prop_assert_eq!(&answers, &expected);
        }
    }

    #[test]
    fn inserted_keys_are_always_found(
        keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..200),
        items in 0_u64..300,
        rate in 1e-9..0.999,
        hash in 0..HASHES.len(),
    ) {
        let filter = filter(items, rate, HASHES[hash]);
        for (at, key) in keys.iter().enumerate() {
            filter.insert(key);
            prop_assert!(keys[..=at].iter().all(|key| filter.contains(key)));
        }
        prop_assert!(keys.iter().all(|key| filter.contains_hash(filter.hash(key))));
        let stats = filter.stats();
        prop_assert_eq!(stats.items, keys.len() as u64);
        prop_assert_eq!(stats.fill_ratio, popcount(&filter) as f64 / filter.params().bits() as f64);
        prop_assert!((0.0..=1.0).contains(&stats.current_false_positive_rate));
    }
}
