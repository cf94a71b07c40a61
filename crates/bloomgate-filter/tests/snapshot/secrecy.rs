//! Tests that snapshots contain no secret material.

use bloomgate_filter::{HashAlgorithm, snapshot};
use hkdf::Hkdf;
use sha2::Sha256;

use crate::fixtures::{SECRET, bloom, classic, secret, snapshots, write};

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn case_57_snapshots_contain_neither_secret_nor_derived_keys() {
    let hex = secret().to_hex();
    for (name, bytes) in snapshots() {
        for part in SECRET.windows(8).chain(hex.as_bytes().windows(8)) {
            assert!(!holds(&bytes, part), "{name}");
        }
    }
    for hash in HashAlgorithm::ALL {
        // As specified in `hash.rs`, for the longest key; shorter keys are prefixes of it.
        let info = format!("bloomgate generation key v1 {}", hash.name());
        let mut key = [0; 192];
        let expand = Hkdf::<Sha256>::new(Some(b"generation no. 1"), &SECRET);
        expand.expand(info.as_bytes(), &mut key).unwrap();
        for bytes in [write(&bloom(hash)), write(&classic(hash))] {
            assert!(holds(&bytes, b"generation no. 1"), "the search finds the nonce");
            assert!(!key.windows(8).any(|part| holds(&bytes, part)), "{}", hash.name());
        }
    }
}

#[test]
fn case_57_bloom_snapshots_contain_no_key() {
    for (name, bytes) in snapshots().into_iter().filter(|(name, _)| name.contains("bloom")) {
        let read = snapshot::read_header(bytes.as_slice()).unwrap();
        let body = &bytes[bytes.len() - 16 - read.body_bytes() as usize..];
        assert!(crate::fixtures::keys().skip(1).all(|key| !holds(body, &key)), "{name}");
    }
}
