//! Small sets of every family, and their snapshots.

use bloomgate_filter::snapshot::{self, Loaded};
use bloomgate_filter::{
    Bitmap, BloomFilter, BloomParams, ClassicBloom, ClassicParams, Error, ExactSet,
    FalsePositiveRate, HashAlgorithm, KeyedHasher, Membership, Secret,
};

/// The number of keys of each set.
pub(crate) const KEYS: u64 = 100;

/// The bytes of the master secret.
pub(crate) const SECRET: [u8; 32] = *b"the master secret of all hashes!";

pub(crate) fn secret() -> Secret {
    Secret::new(&SECRET).unwrap()
}

pub(crate) fn hasher(hash: HashAlgorithm) -> KeyedHasher {
    KeyedHasher::new(hash, &secret(), b"generation no. 1")
}

pub(crate) fn bloom(hash: HashAlgorithm) -> BloomFilter {
    let params = BloomParams::new(KEYS, FalsePositiveRate::new(0.01).unwrap()).unwrap();
    filled(BloomFilter::new(params, hasher(hash)).unwrap())
}

/// 959 bits, so that the last word has a spare bit.
pub(crate) fn classic(hash: HashAlgorithm) -> ClassicBloom {
    let params = ClassicParams::new(KEYS, FalsePositiveRate::new(0.01).unwrap()).unwrap();
    filled(ClassicBloom::new(params, hasher(hash)).unwrap())
}

/// Two arrays and a page. Some ids are inserted twice.
pub(crate) fn bitmap() -> Bitmap {
    let bitmap = filled(Bitmap::new());
    (1 << 40..(1 << 40) + 5000_u64).for_each(|id| _ = bitmap.insert_id(id));
    filled(bitmap)
}

pub(crate) fn exact() -> ExactSet {
    let set = filled(ExactSet::new());
    set.insert(b"");
    set.insert(&[b'k'; 300]);
    filled(set)
}

fn filled<S: Membership>(set: S) -> S {
    keys().for_each(|key| _ = set.insert(&key));
    set
}

pub(crate) fn keys() -> impl Iterator<Item = [u8; 8]> {
    (0..KEYS).map(|key| (key * 977).to_le_bytes())
}

pub(crate) fn write(set: &impl snapshot::Persist) -> Vec<u8> {
    let mut bytes = Vec::new();
    snapshot::write(set, b"entry 1200", &mut bytes).unwrap();
    bytes
}

/// A snapshot of every family and hash algorithm: its name and its bytes.
pub(crate) fn snapshots() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for hash in HashAlgorithm::ALL {
        all.push((format!("bloom-{}", hash.name()), write(&bloom(hash))));
        all.push((format!("classic-{}", hash.name()), write(&classic(hash))));
    }
    all.push(("bitmap".into(), write(&bitmap())));
    all.push(("exact".into(), write(&exact())));
    all
}

pub(crate) fn read(bytes: &[u8]) -> Result<Loaded, Error> {
    snapshot::read(bytes, bytes.len() as u64, Some(&secret()))
}

/// The error of reading `bytes`.
pub(crate) fn error_of(bytes: &[u8]) -> Error {
    read(bytes).map(|loaded| loaded.header).unwrap_err()
}
