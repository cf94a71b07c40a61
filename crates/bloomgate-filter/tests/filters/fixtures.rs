//! The filters under test: the Bloom filter with every hash algorithm, and the classic filter.

use bloomgate_filter::{
    BloomFilter, BloomParams, ClassicBloom, ClassicParams, FalsePositiveRate, HashAlgorithm,
    KeyedHasher, Membership, Secret,
};

/// The secret is fixed, so that every run has the same outcome.
fn hasher(hash: HashAlgorithm) -> KeyedHasher {
    KeyedHasher::new(hash, &Secret::new(&[3; 32]).unwrap(), &[4; 16])
}

/// Builds a filter for a number of items and a false-positive rate; also returns its expected rate
/// with that number of items.
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

/// How many of `keys` the filter reports as present.
pub(crate) fn passing<K: AsRef<[u8]>>(
    filter: &dyn Membership,
    keys: impl Iterator<Item = K>,
) -> u64 {
    keys.filter(|key| filter.contains(key.as_ref())).count() as u64
}
