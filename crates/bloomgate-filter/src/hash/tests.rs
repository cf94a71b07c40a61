//! Tests of the keyed hashes and the secret.

use super::*;
use crate::error::Error;

#[path = "golden.rs"]
mod golden;

const NONCE: [u8; 16] =
    [100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115];

fn secret() -> Secret {
    Secret::new(&std::array::from_fn::<u8, 32, _>(|at| at as u8)).unwrap()
}

fn key(len: usize) -> Vec<u8> {
    (0..len).map(|at| (7 * at + 13 * len + 1) as u8).collect()
}

fn check(algorithm: HashAlgorithm, vectors: &[(usize, u64, u64)], expected_fold: u64) {
    assert!(vectors.len() >= 20);
    let hasher = KeyedHasher::new(algorithm, &secret(), &NONCE);
    for &(len, block, bits) in vectors {
        let got = hasher.hash(&key(len));
        assert_eq!((got.block, got.bits), (block, bits), "{} of {len} bytes", algorithm.name());
    }
    let fold = (0..=300)
        .map(|len| hasher.hash(&key(len)))
        .fold(0_u64, |fold, got| ((fold.rotate_left(5) ^ got.block).rotate_left(5)) ^ got.bits);
    assert_eq!(fold, expected_fold, "{}", algorithm.name());
}

#[test]
fn case_07_siphash_agrees_with_golden_vectors() {
    check(HashAlgorithm::SipHash13, golden::SIPHASH13, golden::SIPHASH13_FOLD);
}

#[test]
fn case_07_xxh3_agrees_with_golden_vectors() {
    check(HashAlgorithm::Xxh3, golden::XXH3, golden::XXH3_FOLD);
}

#[test]
fn case_07_aes_agrees_with_golden_vectors() {
    check(HashAlgorithm::Aes128, golden::AES128, golden::AES128_FOLD);
}

#[test]
fn case_07_portable_aes_agrees_with_golden_vectors() {
    let info = [LABEL.as_bytes(), HashAlgorithm::Aes128.name().as_bytes()];
    let portable = CmacKey::portable(&secret().derive(&NONCE, &info));
    for &(len, block, bits) in golden::AES128 {
        let tag = portable.tag(&key(len));
        assert_eq!((tag as u64, (tag >> 64) as u64), (block, bits), "{len} bytes");
    }
}

#[test]
fn case_07_siphash_agrees_with_the_siphasher_crate() {
    for len in 0..=300 {
        let (key, bytes) = ([len as u64 * 3, !(len as u64)], key(len));
        let expected = siphasher::sip::SipHasher13::new_with_keys(key[0], key[1]).hash(&bytes);
        assert_eq!(siphash13(&key, &bytes), expected, "{len} bytes");
    }
}

#[test]
fn case_07_secret_fingerprint_agrees_with_golden_vector() {
    assert_eq!(secret().fingerprint(), golden::FINGERPRINT);
    assert_ne!(Secret::new(&[1; 32]).unwrap().fingerprint(), golden::FINGERPRINT);
}

#[test]
fn case_07_algorithm_names_and_ids_are_fixed() {
    assert_eq!(
        (HashAlgorithm::SipHash13.id(), HashAlgorithm::SipHash13.name()),
        (1, "siphash-1-3")
    );
    assert_eq!((HashAlgorithm::Xxh3.id(), HashAlgorithm::Xxh3.name()), (2, "xxh3-128"));
    assert_eq!((HashAlgorithm::Aes128.id(), HashAlgorithm::Aes128.name()), (3, "aes-128-cmac"));
    for id in 0..=u8::MAX {
        assert_eq!(
            HashAlgorithm::from_id(id).map(HashAlgorithm::id),
            (1..=3).contains(&id).then_some(id)
        );
    }
}

#[test]
fn secret_nonce_and_algorithm_each_change_the_hash() {
    let hash = |algorithm, secret: &[u8], nonce| {
        let got = KeyedHasher::new(algorithm, &Secret::new(secret).unwrap(), &nonce).hash(b"key");
        (got.block, got.bits)
    };
    let mut all = Vec::new();
    for algorithm in HashAlgorithm::ALL {
        for secret in [[1_u8; 16].as_slice(), &[2; 16], &[1; 17], &[1; 200]] {
            for nonce in [[1; 16], [2; 16]] {
                assert_eq!(hash(algorithm, secret, nonce), hash(algorithm, secret, nonce));
                all.push(hash(algorithm, secret, nonce));
            }
        }
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn debug_output_contains_no_secret() {
    let hasher = KeyedHasher::new(HashAlgorithm::Xxh3, &secret(), &NONCE);
    assert_eq!(format!("{:?}", secret()), "Secret(redacted)");
    assert_eq!(format!("{hasher:?}"), "KeyedHasher(xxh3-128, redacted)");
    assert_eq!(format!("{:?}", hasher.hash(b"key")), "KeyHash(redacted)");
}

#[test]
fn hashers_compare_by_algorithm_secret_and_nonce() {
    let one = KeyedHasher::new(HashAlgorithm::Aes128, &secret(), &NONCE);
    assert_eq!((one.nonce(), one.secret_fingerprint()), (NONCE, secret().fingerprint()));
    assert!(one.same_as(&KeyedHasher::new(HashAlgorithm::Aes128, &secret(), &NONCE)));
    let others = [
        KeyedHasher::new(HashAlgorithm::Xxh3, &secret(), &NONCE),
        KeyedHasher::new(HashAlgorithm::Aes128, &Secret::new(&[1; 32]).unwrap(), &NONCE),
        KeyedHasher::new(HashAlgorithm::Aes128, &secret(), &[0; 16]),
    ];
    assert!(others.iter().all(|other| !one.same_as(other)));
}

#[test]
fn short_secret_is_refused_with_its_length() {
    for len in 0..16 {
        assert_eq!(Secret::new(&vec![1; len]).unwrap_err(), Error::SecretTooShort { bytes: len });
    }
    assert!(Secret::new(&[1; 16]).is_ok());
    assert_eq!(
        Secret::from_hex(&"ab".repeat(15)).unwrap_err(),
        Error::SecretTooShort { bytes: 15 }
    );
    assert_eq!(Secret::from_hex("").unwrap_err(), Error::SecretTooShort { bytes: 0 });
}

#[test]
fn secret_hexadecimal_round_trips() {
    let hex = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    assert_eq!(secret().to_hex(), hex);
    for text in [hex.to_owned(), hex.to_uppercase(), format!(" {hex}\n")] {
        assert_eq!(Secret::from_hex(&text).unwrap().fingerprint(), secret().fingerprint());
    }
    for bad in [&hex[1..], &hex.replace('a', "g"), &hex.replace("0a", "é"), "0x00", "é"] {
        assert_eq!(Secret::from_hex(bad).unwrap_err(), Error::SecretNotHex, "{bad}");
    }
}

#[test]
fn generated_secrets_have_32_bytes_and_differ() {
    let (one, other) = (Secret::generate().unwrap(), Secret::generate().unwrap());
    assert_eq!(one.to_hex().len(), 64);
    assert_ne!(one.to_hex(), other.to_hex());
}

#[test]
fn missing_secret_variable_is_named_in_the_error() {
    let variable = "BLOOMGATE_FILTER_TEST_NO_SUCH_VARIABLE";
    let error = Secret::from_env(variable).unwrap_err();
    assert!(error.to_string().contains(variable));
    // Set in every build, and not hexadecimal.
    assert_eq!(Secret::from_env("CARGO_MANIFEST_DIR").unwrap_err(), Error::SecretNotHex);
}
