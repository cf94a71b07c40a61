//! The filters that are measured.

use std::collections::HashSet;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use bloomgate_filter::{
    BloomFilter, BloomParams, ClassicParams, FalsePositiveRate, HashAlgorithm, KeyedHasher,
    Membership, Secret,
};
use fastbloom::AtomicBloomFilter;
use xorf::Filter;
use xxhash_rust::xxh3::{xxh3_64_with_secret, xxh3_128_with_secret};

use crate::RATE;
use crate::keys;
use crate::report::SpaceRow;
use crate::timing::{lookup, lookup_isolated, per_key};

/// A filled filter.
pub(crate) struct MeasuredFilter {
    pub(crate) name: &'static str,
    pub(crate) bits_per_key: f64,
    /// Not a filter but a lower bound of lookup time.
    pub(crate) is_bound: bool,
    /// Nanoseconds per key, and how many keys passed.
    pub(crate) lookup: Lookup,
    /// Nanoseconds per key without overlapping lookups; `None` for batches.
    pub(crate) lookup_isolated: Option<LookupIsolated>,
}

type Lookup = Box<dyn Fn(&[u64]) -> (f64, usize)>;
type LookupIsolated = Box<dyn Fn(&[u64]) -> f64>;

/// An empty filter to be filled; `fill` returns the nanoseconds per key.
pub(crate) struct Filler {
    pub(crate) name: &'static str,
    pub(crate) fill: Fill,
}

type Fill = Box<dyn FnMut(&[u64]) -> f64>;

pub(crate) const FASTBLOOM_DEFAULT: &str = "fastbloom 0.17 atomic, default hash";
pub(crate) const FB: &str = "fastbloom 0.17 atomic, XXH3";
pub(crate) const LINE: &str = "bound: XXH3 and one line";
pub(crate) const XXH3: &str = "BloomFilter, XXH3";
pub(crate) const XXH3_BATCH: &str = "BloomFilter, XXH3, batches";
pub(crate) const AES: &str = "BloomFilter, AES-128";
pub(crate) const AES_OBJECT: &str = "BloomFilter, AES-128, as a trait object";
pub(crate) const AES_BATCH: &str = "BloomFilter, AES-128, batches";
pub(crate) const SIP: &str = "BloomFilter, SipHash-1-3";
pub(crate) const SIP_BATCH: &str = "BloomFilter, SipHash-1-3, batches";

/// Keys per batch.
const BATCH: usize = 1_024;

/// The secret of XXH3 for crates that take hashes.
static PEER_SECRET: [u8; 192] = {
    let mut secret = [0; 192];
    let mut at = 0;
    while at < 192 {
        secret[at] = (at as u8).wrapping_mul(167) ^ 0x5a;
        at += 1;
    }
    secret
};

fn xxh3(key: u64) -> u64 {
    xxh3_64_with_secret(&key.to_le_bytes(), &PEER_SECRET)
}

fn measured_filter(
    name: &'static str,
    bits_per_key: f64,
    contains: impl Fn(u64) -> bool + Clone + 'static,
) -> MeasuredFilter {
    let isolated = contains.clone();
    MeasuredFilter {
        name,
        bits_per_key,
        is_bound: false,
        lookup: Box::new(move |keys| lookup(keys, &contains)),
        lookup_isolated: Some(Box::new(move |keys| lookup_isolated(keys, &isolated))),
    }
}

/// Leaks `filter`, so that the closures can borrow it until the process ends.
fn leak<T>(filter: T) -> &'static T {
    Box::leak(Box::new(filter))
}

fn bloom_filter(items: usize, hash: HashAlgorithm) -> BloomFilter {
    let secret = Secret::new(&[1; 32]).expect("a long enough secret");
    let params = BloomParams::new(items as u64, rate(RATE)).expect("valid parameters");
    BloomFilter::new(params, KeyedHasher::new(hash, &secret, &[2; 16])).expect("memory")
}

fn rate(rate: f64) -> FalsePositiveRate {
    FalsePositiveRate::new(rate).expect("valid rate")
}

fn fastbloom(items: usize) -> AtomicBloomFilter {
    AtomicBloomFilter::with_false_pos(RATE).expected_items(items)
}

/// Calls `add` with all keys, in chunks.
fn each_key(items: usize, mut add: impl FnMut(&[u64])) {
    for from in (0..items).step_by(1 << 16) {
        add(&keys::inserted(from..(from + (1 << 16)).min(items)));
    }
}

fn as_bytes(keys: &[u64]) -> Vec<[u8; 8]> {
    keys.iter().map(|key| key.to_le_bytes()).collect()
}

/// All filters, filled with `items` keys.
///
/// Filters whose ratio is reported are adjacent, so that they are measured close in time.
pub(crate) fn all(items: usize) -> Vec<MeasuredFilter> {
    let mut all = vec![lower_bound(items)];
    all.extend(with_batches(items, HashAlgorithm::Xxh3, XXH3, XXH3_BATCH));
    all.extend(fastblooms(items));
    all.extend(with_batches(items, HashAlgorithm::Aes128, AES, AES_BATCH));
    all.push(trait_object(items));
    all.extend(with_batches(items, HashAlgorithm::SipHash13, SIP, SIP_BATCH));
    all.extend(other_crates(items));
    all
}

fn with_batches(
    items: usize,
    hash: HashAlgorithm,
    name: &'static str,
    batch_name: &'static str,
) -> [MeasuredFilter; 2] {
    let filter = leak(bloom_filter(items, hash));
    each_key(items, |keys| filter.insert_many(&as_bytes(keys)));
    let bits = filter.params().bits_per_item();
    let single = measured_filter(name, bits, |key| filter.contains(&key.to_le_bytes()));
    [single, batches(batch_name, bits, filter)]
}

/// A trait object: nothing can be inlined, and the key length is unknown.
fn trait_object(items: usize) -> MeasuredFilter {
    let filter = leak(bloom_filter(items, HashAlgorithm::Aes128));
    each_key(items, |keys| filter.insert_many(&as_bytes(keys)));
    let object: &'static dyn Membership = black_box(filter);
    let bits = filter.params().bits_per_item();
    measured_filter(AES_OBJECT, bits, |key| object.contains(&key.to_le_bytes()))
}

fn batches(name: &'static str, bits_per_key: f64, filter: &'static BloomFilter) -> MeasuredFilter {
    let lookup = |keys: &[u64]| {
        let (keys, mut answers) = (as_bytes(keys), Vec::with_capacity(BATCH));
        per_key(keys.len(), || {
            let mut passed = 0;
            for batch in keys.chunks(BATCH) {
                filter.contains_many(batch, &mut answers);
                passed += black_box(&answers).iter().filter(|answer| **answer).count();
            }
            passed
        })
    };
    MeasuredFilter {
        name,
        bits_per_key,
        is_bound: false,
        lookup: Box::new(lookup),
        lookup_isolated: None,
    }
}

/// The lower bound: one hash, and one word of one line in as much memory as the filter has.
fn lower_bound(items: usize) -> MeasuredFilter {
    #[repr(align(64))]
    struct Line([AtomicU64; 8]);
    let blocks = BloomParams::new(items as u64, rate(RATE)).expect("valid parameters").blocks();
    // Not zeros, which could all be mapped to the same page.
    let lines = leak((0..blocks).map(|at| Line([at; 8].map(AtomicU64::new))).collect::<Vec<_>>());
    let contains = |key: u64| {
        let hash = xxh3_128_with_secret(&key.to_le_bytes(), &PEER_SECRET);
        let (high, low) = ((hash >> 64) as u64, hash as u64);
        let line = (u128::from(high) * lines.len() as u128) >> 64;
        let word = lines[line as usize].0[low as usize % 8].load(Ordering::Relaxed);
        word >> (low >> 58) & 1 == 1
    };
    MeasuredFilter { is_bound: true, ..measured_filter(LINE, 0.0, contains) }
}

fn fastblooms(items: usize) -> [MeasuredFilter; 2] {
    let hashed = leak(fastbloom(items));
    each_key(items, |keys| keys.iter().for_each(|key| _ = hashed.insert_hash(xxh3(*key))));
    let own = leak(fastbloom(items));
    each_key(items, |keys| keys.iter().for_each(|key| _ = own.insert(key)));
    let bits = hashed.num_bits() as f64 / items as f64;
    [
        measured_filter(FB, bits, |key| hashed.contains_hash(xxh3(key))),
        measured_filter(FASTBLOOM_DEFAULT, bits, |key| own.contains(&key)),
    ]
}

fn other_crates(items: usize) -> Vec<MeasuredFilter> {
    let mut others = vec![];
    let mut filter = sbbf_rs_safe::Filter::new(17, items);
    each_key(items, |keys| keys.iter().for_each(|key| _ = filter.insert_hash(xxh3(*key))));
    let filter = leak(filter);
    let bits = filter.as_bytes().len() as f64 * 8.0 / items as f64;
    let name = "sbbf-rs-safe 0.3, XXH3 (needs &mut)";
    others.push(measured_filter(name, bits, |key| filter.contains_hash(xxh3(key))));

    let mut keys = keys::inserted(0..items);
    let filter = leak(xorf::BinaryFuse8::try_from(&keys).expect("distinct keys"));
    let bits = filter.fingerprints.len() as f64 * 8.0 / items as f64;
    others
        .push(measured_filter("xorf 0.13 BinaryFuse8 (static)", bits, |key| filter.contains(&key)));

    if items <= 10_000_000 {
        let mut filter = bloomfilter::Bloom::new_for_fp_rate(items, RATE).expect("a filter");
        keys.iter().for_each(|key| filter.set(key));
        let filter = leak(filter);
        let bits = filter.len() as f64 / items as f64;
        others.push(measured_filter("bloomfilter 3 (needs &mut)", bits, |key| filter.check(&key)));

        let set = leak(keys.drain(..).collect::<HashSet<u64>>());
        // hashbrown: one byte of metadata per slot, at most 7/8 of a power of two filled.
        let slots = (set.capacity() as f64 * 8.0 / 7.0).ceil();
        let bits = slots * 72.0 / items as f64;
        others.push(measured_filter("std HashSet<u64>", bits, |key| set.contains(&key)));
    }
    others
}

/// The filters whose inserts are compared: those that allow concurrent reads.
pub(crate) fn fillers(items: usize) -> Vec<Filler> {
    fn filler(name: &'static str, fill: impl Fn(&[u64]) + 'static) -> Filler {
        Filler { name, fill: Box::new(move |keys| per_key(keys.len(), || fill(keys)).0) }
    }
    let batched = |name, hash| {
        let filter = bloom_filter(items, hash);
        let fill = move |keys: &[u64]| {
            let keys = as_bytes(keys);
            per_key(keys.len(), || filter.insert_many(&keys)).0
        };
        Filler { name, fill: Box::new(fill) }
    };
    let single = |name, hash| {
        let filter = bloom_filter(items, hash);
        filler(name, move |keys| {
            keys.iter().for_each(|key| _ = black_box(filter.insert(&key.to_le_bytes())));
        })
    };
    let hashed = fastbloom(items);
    // Its memory is zeroed lazily, ours eagerly. Write to it, so that both start alike.
    hashed.clear();
    vec![
        single(XXH3, HashAlgorithm::Xxh3),
        batched(XXH3_BATCH, HashAlgorithm::Xxh3),
        single(AES, HashAlgorithm::Aes128),
        batched(AES_BATCH, HashAlgorithm::Aes128),
        filler(FB, move |keys| {
            keys.iter().for_each(|key| _ = black_box(hashed.insert_hash(xxh3(*key))));
        }),
    ]
}

/// Memory per key of the blocked layout and of the classic filter.
pub(crate) fn space() -> Vec<SpaceRow> {
    let rates = [0.01, 0.001, 0.0001];
    let row = |value| {
        let items = 10_000_000;
        let params = BloomParams::new(items, rate(value)).expect("valid parameters");
        let classic = ClassicParams::new(items, rate(value)).expect("valid parameters");
        SpaceRow { rate: value, bloom: params.bits_per_item(), classic: classic.bits_per_item() }
    };
    rates.into_iter().map(row).collect()
}
