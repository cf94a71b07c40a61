//! Benchmarks of the hash algorithms, and of the cipher of the crate `aes`.

use std::hint::black_box;

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use bloomgate_filter::{HashAlgorithm, KeyedHasher, Secret};
use siphasher::sip::SipHasher13;

use crate::keys;
use crate::report::HashRow;
use crate::timing::{Samples, per_key};

const CRATE_SIPHASHER: &str = "siphash-1-3 by the crate siphasher";
const CRATE_AES: &str = "aes-128, one block by the crate aes";

/// Keys per round.
const KEYS: usize = 100_000;

/// Measures the time per key of eight bytes for every algorithm, in `rounds` rounds.
pub(crate) fn hashes(rounds: usize) -> Vec<HashRow> {
    let keys: Vec<_> = keys::inserted(0..KEYS).into_iter().map(u64::to_le_bytes).collect();
    let secret = Secret::new(&[1; 32]).expect("a long enough secret");
    let hashers = HashAlgorithm::ALL.map(|hash| KeyedHasher::new(hash, &secret, &[2; 16]));
    let cipher = aes::Aes128::new(&[3; 16].into());
    let mut rows: Vec<_> = HashAlgorithm::ALL
        .map(HashAlgorithm::name)
        .into_iter()
        .chain([CRATE_SIPHASHER, CRATE_AES])
        .map(|name| HashRow { name, ns: Samples::default() })
        .collect();
    for _ in 0..rounds {
        let mut times =
            hashers.each_ref().map(|hasher| each(&keys, |key| hasher.hash(key))).to_vec();
        times.push(each(&keys, |key| SipHasher13::new_with_keys(1, 2).hash(key)));
        times.push(each(&keys, |key| {
            let mut block = u128::from(u64::from_le_bytes(*key)).to_le_bytes().into();
            cipher.encrypt_block(&mut block);
            block
        }));
        rows.iter_mut().zip(times).for_each(|(row, ns)| row.ns.push(ns));
    }
    rows
}

/// Nanoseconds per key of `hash`.
fn each<R>(keys: &[[u8; 8]], hash: impl Fn(&[u8; 8]) -> R) -> f64 {
    per_key(keys.len(), || keys.iter().for_each(|key| _ = black_box(hash(key)))).0
}
