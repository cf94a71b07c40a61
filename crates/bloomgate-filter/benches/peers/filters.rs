//! Who is measured.

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
use crate::timing::{ask, ask_isolated, per_key};

/// A filled filter.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) bits_per_key: f64,
    /// Not a filter, but what none can be quicker than.
    pub(crate) is_bound: bool,
    /// Time a key, and how many passed.
    pub(crate) ask: Ask,
    /// Time a key when no two overlap; `None` for batches.
    pub(crate) ask_isolated: Option<AskIsolated>,
}

type Ask = Box<dyn Fn(&[u64]) -> (f64, usize)>;
type AskIsolated = Box<dyn Fn(&[u64]) -> f64>;

/// An empty filter; returns the time a key.
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

/// Keys a batch.
const BATCH: usize = 1_024;

/// The secret of XXH3 where a peer is fed with it.
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

fn contender(
    name: &'static str,
    bits_per_key: f64,
    contains: impl Fn(u64) -> bool + Clone + 'static,
) -> Contender {
    let isolated = contains.clone();
    Contender {
        name,
        bits_per_key,
        is_bound: false,
        ask: Box::new(move |keys| ask(keys, &contains)),
        ask_isolated: Some(Box::new(move |keys| ask_isolated(keys, &isolated))),
    }
}

/// Leaks `filter`: a benchmark needs it to the end, and its closures the address.
fn keep<T>(filter: T) -> &'static T {
    Box::leak(Box::new(filter))
}

fn ours(items: usize, hash: HashAlgorithm) -> BloomFilter {
    let secret = Secret::new(&[1; 32]).expect("long enough");
    let params = BloomParams::new(items as u64, rate(RATE)).expect("a params");
    BloomFilter::new(params, KeyedHasher::new(hash, &secret, &[2; 16])).expect("memory")
}

fn rate(rate: f64) -> FalsePositiveRate {
    FalsePositiveRate::new(rate).expect("a rate")
}

fn fastbloom(items: usize) -> AtomicBloomFilter {
    AtomicBloomFilter::with_false_pos(RATE).expected_items(items)
}

/// Gives `add` all keys, some at a time.
fn each_key(items: usize, mut add: impl FnMut(&[u64])) {
    for from in (0..items).step_by(1 << 16) {
        add(&keys::inserted(from..(from + (1 << 16)).min(items)));
    }
}

fn as_bytes(keys: &[u64]) -> Vec<[u8; 8]> {
    keys.iter().map(|key| key.to_le_bytes()).collect()
}

/// Everybody who takes part with `items` keys, filled with them.
///
/// Those whose ratios are told stand beside each other: what takes turns in quick succession meets
/// the same machine.
pub(crate) fn all(items: usize) -> Vec<Contender> {
    let mut all = vec![line(items)];
    all.extend(with_batches(items, HashAlgorithm::Xxh3, XXH3, XXH3_BATCH));
    all.extend(fastblooms(items));
    all.extend(with_batches(items, HashAlgorithm::Aes128, AES, AES_BATCH));
    all.push(as_object(items));
    all.extend(with_batches(items, HashAlgorithm::SipHash13, SIP, SIP_BATCH));
    all.extend(others(items));
    all
}

fn with_batches(
    items: usize,
    hash: HashAlgorithm,
    name: &'static str,
    batch_name: &'static str,
) -> [Contender; 2] {
    let filter = keep(ours(items, hash));
    each_key(items, |keys| filter.insert_many(&as_bytes(keys)));
    let bits = filter.params().bits_per_item();
    let single = contender(name, bits, |key| filter.contains(&key.to_le_bytes()));
    [single, batches(batch_name, bits, filter)]
}

/// As the guard holds it: nothing can be inlined, and no length is known.
fn as_object(items: usize) -> Contender {
    let filter = keep(ours(items, HashAlgorithm::Aes128));
    each_key(items, |keys| filter.insert_many(&as_bytes(keys)));
    let object: &'static dyn Membership = black_box(filter);
    let bits = filter.params().bits_per_item();
    contender(AES_OBJECT, bits, |key| object.contains(&key.to_le_bytes()))
}

fn batches(name: &'static str, bits_per_key: f64, filter: &'static BloomFilter) -> Contender {
    let ask = |keys: &[u64]| {
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
    Contender { name, bits_per_key, is_bound: false, ask: Box::new(ask), ask_isolated: None }
}

/// The hash, and one word of one line of as much memory as the filter has.
fn line(items: usize) -> Contender {
    #[repr(align(64))]
    struct Line([AtomicU64; 8]);
    let blocks = BloomParams::new(items as u64, rate(RATE)).expect("a params").blocks();
    // Not zeros: those might all be the same page.
    let lines = keep((0..blocks).map(|at| Line([at; 8].map(AtomicU64::new))).collect::<Vec<_>>());
    let contains = |key: u64| {
        let hash = xxh3_128_with_secret(&key.to_le_bytes(), &PEER_SECRET);
        let (high, low) = ((hash >> 64) as u64, hash as u64);
        let line = (u128::from(high) * lines.len() as u128) >> 64;
        let word = lines[line as usize].0[low as usize % 8].load(Ordering::Relaxed);
        word >> (low >> 58) & 1 == 1
    };
    Contender { is_bound: true, ..contender(LINE, 0.0, contains) }
}

fn fastblooms(items: usize) -> [Contender; 2] {
    let fed = keep(fastbloom(items));
    each_key(items, |keys| keys.iter().for_each(|key| _ = fed.insert_hash(xxh3(*key))));
    let own = keep(fastbloom(items));
    each_key(items, |keys| keys.iter().for_each(|key| _ = own.insert(key)));
    let bits = fed.num_bits() as f64 / items as f64;
    [
        contender(FB, bits, |key| fed.contains_hash(xxh3(key))),
        contender(FASTBLOOM_DEFAULT, bits, |key| own.contains(&key)),
    ]
}

fn others(items: usize) -> Vec<Contender> {
    let mut others = vec![];
    let mut filter = sbbf_rs_safe::Filter::new(17, items);
    each_key(items, |keys| keys.iter().for_each(|key| _ = filter.insert_hash(xxh3(*key))));
    let filter = keep(filter);
    let bits = filter.as_bytes().len() as f64 * 8.0 / items as f64;
    let name = "sbbf-rs-safe 0.3, XXH3 (needs &mut)";
    others.push(contender(name, bits, |key| filter.contains_hash(xxh3(key))));

    let mut keys = keys::inserted(0..items);
    let filter = keep(xorf::BinaryFuse8::try_from(&keys).expect("distinct keys"));
    let bits = filter.fingerprints.len() as f64 * 8.0 / items as f64;
    others.push(contender("xorf 0.13 BinaryFuse8 (static)", bits, |key| filter.contains(&key)));

    if items <= 10_000_000 {
        let mut filter = bloomfilter::Bloom::new_for_fp_rate(items, RATE).expect("a filter");
        keys.iter().for_each(|key| filter.set(key));
        let filter = keep(filter);
        let bits = filter.len() as f64 / items as f64;
        others.push(contender("bloomfilter 3 (needs &mut)", bits, |key| filter.check(&key)));

        let set = keep(keys.drain(..).collect::<HashSet<u64>>());
        // hashbrown: a byte of metadata beside each place, 7/8 of a power of two filled at most.
        let places = (set.capacity() as f64 * 8.0 / 7.0).ceil();
        let bits = places * 72.0 / items as f64;
        others.push(contender("std HashSet<u64>", bits, |key| set.contains(&key)));
    }
    others
}

/// Those whose inserts are compared: the ones that threads can read at the same time.
pub(crate) fn fillers(items: usize) -> Vec<Filler> {
    fn filler(name: &'static str, fill: impl Fn(&[u64]) + 'static) -> Filler {
        Filler { name, fill: Box::new(move |keys| per_key(keys.len(), || fill(keys)).0) }
    }
    let batched = |name, hash| {
        let filter = ours(items, hash);
        let fill = move |keys: &[u64]| {
            let keys = as_bytes(keys);
            per_key(keys.len(), || filter.insert_many(&keys)).0
        };
        Filler { name, fill: Box::new(fill) }
    };
    let single = |name, hash| {
        let filter = ours(items, hash);
        filler(name, move |keys| {
            keys.iter().for_each(|key| _ = black_box(filter.insert(&key.to_le_bytes())));
        })
    };
    let fed = fastbloom(items);
    // Its memory is zeroed lazily; ours is written to. Touch it, so that both begin alike.
    fed.clear();
    vec![
        single(XXH3, HashAlgorithm::Xxh3),
        batched(XXH3_BATCH, HashAlgorithm::Xxh3),
        single(AES, HashAlgorithm::Aes128),
        batched(AES_BATCH, HashAlgorithm::Aes128),
        filler(FB, move |keys| {
            keys.iter().for_each(|key| _ = black_box(fed.insert_hash(xxh3(*key))));
        }),
    ]
}

/// What is paid for one cache line a lookup.
pub(crate) fn space() -> Vec<SpaceRow> {
    let rates = [0.01, 0.001, 0.0001];
    let row = |value| {
        let items = 10_000_000;
        let params = BloomParams::new(items, rate(value)).expect("a params");
        let classic = ClassicParams::new(items, rate(value)).expect("a params");
        SpaceRow { rate: value, bloom: params.bits_per_item(), classic: classic.bits_per_item() }
    };
    rates.into_iter().map(row).collect()
}
