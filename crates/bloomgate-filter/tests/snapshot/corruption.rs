//! Tests that every kind of damage is detected.

use bloomgate_filter::{Error, HashAlgorithm, Membership as _, Secret, snapshot};

use crate::fixtures::{bloom, error_of, keys, read, secret, snapshots, write};
use crate::forge::{self, with};

#[test]
fn case_08_every_single_bit_flip_is_an_error() {
    for (name, whole) in snapshots() {
        let mut damaged = whole.clone();
        for bit in 0..8 * whole.len() {
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&damaged).is_err(), "{name} with bit {bit} flipped");
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(damaged == whole && read(&damaged).is_ok());
    }
}

#[test]
fn case_08_truncation_at_any_byte_is_an_error() {
    for (name, whole) in snapshots() {
        for length in 0..whole.len() {
            let cut = &whole[..length];
            let error = error_of(cut);
            let Error::SnapshotTruncated { expected, actual } = error else {
                unreachable!("{name} cut off at {length}: {error}")
            };
            assert_eq!(actual, length as u64, "{name}");
            assert!(expected > actual && expected <= whole.len() as u64, "{name} {length}");
            // With the full length given, the input ends early.
            let end = snapshot::read(cut, whole.len() as u64, Some(&secret()));
            assert!(matches!(end, Err(Error::SnapshotTruncated { .. })), "{name} {length}");
        }
    }
}

#[test]
fn case_08_trailing_byte_is_an_error_with_or_without_a_matching_length() {
    for (name, mut bytes) in snapshots() {
        let expected = bytes.len() as u64;
        bytes.push(0);
        let too_long = Error::SnapshotTooLong { expected, actual: expected + 1 };
        assert_eq!(error_of(&bytes), too_long, "{name}");
        let unannounced = snapshot::read(bytes.as_slice(), expected, Some(&secret()));
        assert_eq!(unannounced.unwrap_err(), too_long, "{name}");
    }
}

#[test]
fn case_08_unknown_version_is_refused_with_its_number() {
    let whole = write(&bloom(HashAlgorithm::Xxh3));
    for version in [0, 2, 0x0100, u16::MAX] {
        let other = with(&whole, forge::VERSION, &version.to_le_bytes());
        assert_eq!(error_of(&other), Error::SnapshotVersion { version });
        let unread = snapshot::read_header(other.as_slice());
        assert_eq!(unread, Err(Error::SnapshotVersion { version }));
    }
}

#[test]
fn case_08_zeroed_item_count_is_damage_and_a_forged_one_hides_no_key() {
    let whole = write(&bloom(HashAlgorithm::Xxh3));
    let mut zeroed = whole.clone();
    zeroed[forge::ITEMS..forge::ITEMS + 8].fill(0);
    assert_eq!(error_of(&zeroed), Error::SnapshotHeaderDamaged);

    // With valid checksums the forged count is accepted. It affects statistics, not lookups.
    let forged = read(&with(&whole, forge::ITEMS, &[0; 8])).unwrap();
    let set = forged.set;
    assert_eq!(set.stats().items, 0);
    assert!(keys().all(|key| set.contains(&key)));
}

#[test]
fn case_08_changed_hash_algorithm_is_damage_and_an_unknown_one_is_named() {
    let whole = write(&bloom(HashAlgorithm::Xxh3));
    let mut other = whole.clone();
    other[forge::HASH_ALGORITHM] = HashAlgorithm::SipHash13.id();
    assert_eq!(error_of(&other), Error::SnapshotHeaderDamaged);
    for id in [0, 4, 255] {
        let unknown = with(&whole, forge::HASH_ALGORITHM, &[id]);
        assert_eq!(error_of(&unknown), Error::SnapshotHashAlgorithm { id });
    }
}

#[test]
fn case_08_wrong_or_missing_secret_is_refused() {
    let whole = write(&bloom(HashAlgorithm::Aes128));
    let length = whole.len() as u64;
    let other = Secret::new(&[8; 32]).unwrap();
    let differs = snapshot::read(whole.as_slice(), length, Some(&other));
    assert_eq!(differs.unwrap_err(), Error::SecretDiffers);
    let missing = snapshot::read(whole.as_slice(), length, None);
    assert_eq!(missing.unwrap_err(), Error::SecretMissing);
    let forged = with(&whole, forge::FINGERPRINT, &other.fingerprint());
    assert_eq!(error_of(&forged), Error::SecretDiffers);
}

#[test]
fn case_08_text_converted_file_is_not_a_snapshot() {
    let whole = write(&bloom(HashAlgorithm::Xxh3));
    let text = String::from_utf8_lossy(&whole).into_owned();
    let to_unix: Vec<u8> = whole
        .iter()
        .copied()
        .enumerate()
        .filter(|&(at, _)| at != 4)
        .map(|(_, byte)| byte)
        .collect();
    let seven_bits: Vec<u8> = whole.iter().map(|byte| byte & 0x7f).collect();
    let cases = [text.into_bytes(), to_unix, seven_bits, b"{}".to_vec(), vec![0; 500]];
    for bytes in &cases {
        assert_eq!(error_of(bytes), Error::NotASnapshot);
    }
}
