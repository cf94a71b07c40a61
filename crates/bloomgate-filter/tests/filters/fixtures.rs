//! The Bloom filters that the tests here share: every hash, and the classic one.

use bloomgate_filter::{
    BloomFilter, BloomParams, ClassicBloom, ClassicParams, FalsePositiveRate, HashAlgorithm,
    KeyedHasher, Membership, Secret,
};

/// A fixed secret: every run of a test is the same run.
fn hasher(hash: HashAlgorithm) -> KeyedHasher {
    KeyedHasher::new(hash, &Secret::new(&[3; 32]).unwrap(), &[4; 16])
}

/// A filter of a kind, and the rate that its own model expects once it is full.
pub(crate) type Build = fn(u64, f64) -> (Box<dyn Membership>, f64);

fn bloom(hash: HashAlgorithm, items: u64, rate: f64) -> (Box<dyn Membership>, f64) {
    let params = BloomParams::new(items, FalsePositiveRate::new(rate).unwrap()).unwrap();
    (Box::new(BloomFilter::new(params, hasher(hash)).unwrap()), params.expected_rate(items))
}

pub(crate) fn aes(items: u64, rate: f64) -> (Box<dyn Membership>, f64) {
    bloom(HashAlgorithm::Aes128, items, rate)
}

pub(crate) fn xxh3(items: u64, rate: f64) -> (Box<dyn Membership>, f64) {
    bloom(HashAlgorithm::Xxh3, items, rate)
}

pub(crate) fn siphash(items: u64, rate: f64) -> (Box<dyn Membership>, f64) {
    bloom(HashAlgorithm::SipHash13, items, rate)
}

pub(crate) fn classic(items: u64, rate: f64) -> (Box<dyn Membership>, f64) {
    let params = ClassicParams::new(items, FalsePositiveRate::new(rate).unwrap()).unwrap();
    (
        Box::new(ClassicBloom::new(params, hasher(HashAlgorithm::Aes128)).unwrap()),
        params.expected_rate(items),
    )
}

pub(crate) const ALL_FILTERS: [Build; 4] = [aes, xxh3, siphash, classic];

/// How many of `keys` pass.
pub(crate) fn passing<K: AsRef<[u8]>>(
    filter: &dyn Membership,
    keys: impl Iterator<Item = K>,
) -> u64 {
    keys.filter(|key| filter.contains(key.as_ref())).count() as u64
}
