//! Tests that invalid fields under valid checksums are refused with their name.

use bloomgate_filter::{AnySet, Bitmap, Error, ExactSet, HashAlgorithm, Membership as _};

use crate::fixtures::{bitmap, bloom, classic, error_of, exact, read, snapshots, write};
use crate::forge::{self, with};

/// The field that the error of reading `forged` names.
fn refused(forged: &[u8]) -> &'static str {
    match error_of(forged) {
        Error::SnapshotField { field, .. } => field,
        error => unreachable!("unexpected error: {error}"),
    }
}

#[test]
fn case_10_invalid_sizes_are_refused() {
    let (bloom, classic) =
        (write(&bloom(HashAlgorithm::Xxh3)), write(&classic(HashAlgorithm::Xxh3)));
    for size in [0, 1 << 57, 1 << 58, 1 << 60, 1 << 63, (1 << 63) + 1, u64::MAX] {
        let forged = with(&bloom, forge::SIZE, &u64::to_le_bytes(size));
        assert_eq!(refused(&forged), "size", "{size}");
    }
    for size in [0, u64::MAX, u64::MAX - 62] {
        let forged = with(&classic, forge::SIZE, &u64::to_le_bytes(size));
        let field = refused(&forged);
        assert!(field == "size or hashes" || field == "body length", "{size} {field}");
    }
    // Valid sizes that don't match the body.
    for size in [1, 3, 1 << 28, 1 << 56] {
        let forged = with(&bloom, forge::SIZE, &u64::to_le_bytes(size));
        assert_eq!(refused(&forged), "body length", "{size}");
        let forged = with(&classic, forge::SIZE, &u64::to_le_bytes(size + 6));
        assert_eq!(refused(&forged), "body length", "{size}");
    }
}

#[test]
fn case_10_invalid_numbers_of_hashes_are_refused() {
    let (bloom, classic) =
        (write(&bloom(HashAlgorithm::Xxh3)), write(&classic(HashAlgorithm::Xxh3)));
    for hashes in [0, 65, 1 << 31, u32::MAX] {
        let forged = with(&classic, forge::HASHES, &u32::to_le_bytes(hashes));
        assert_eq!(refused(&forged), "size or hashes");
        let forged = with(&bloom, forge::HASHES, &u32::to_le_bytes(hashes));
        assert_eq!(refused(&forged), "hashes");
    }
}

#[test]
fn case_10_invalid_lengths_are_refused() {
    for whole in [write(&bloom(HashAlgorithm::Xxh3)), write(&classic(HashAlgorithm::Xxh3))] {
        for length in [0, 8, (1 << 31) - 1, i64::MAX as u64, u64::MAX - 100, u64::MAX] {
            let forged = with(&whole, forge::BODY_LENGTH, &u64::to_le_bytes(length));
            assert_eq!(refused(&forged), "body length", "{length}");
        }
        for length in [4097, 1 << 31, u32::MAX] {
            let forged = with(&whole, forge::POSITION_LENGTH, &u32::to_le_bytes(length));
            assert_eq!(refused(&forged), "position length", "{length}");
        }
        for length in [0, 113, u32::MAX] {
            let forged = with(&whole, forge::HEADER_LENGTH, &u32::to_le_bytes(length));
            assert_eq!(refused(&forged), "header length", "{length}");
        }
        // Body length and size agree, but the snapshot is shorter.
        let mut forged = with(&whole, forge::BODY_LENGTH, &u64::to_le_bytes(64 << 30));
        let size = if whole[forge::FAMILY] == 1 { 1 << 30 } else { 8 * (64 << 30) };
        forged = with(&forged, forge::SIZE, &u64::to_le_bytes(size));
        let error = error_of(&forged);
        assert!(matches!(error, Error::SnapshotTruncated { .. }), "{error}");
    }
}

#[test]
fn case_10_invalid_false_positive_rates_are_refused() {
    let rates = [f64::NAN, -f64::NAN, 0.0, -0.0, 1.0, 1.5, -0.1, f64::INFINITY, 5e-324, 1e-10];
    for whole in [write(&bloom(HashAlgorithm::Xxh3)), write(&classic(HashAlgorithm::Xxh3))] {
        for rate in rates {
            let forged = with(&whole, forge::FALSE_POSITIVE_RATE, &rate.to_le_bytes());
            assert_eq!(refused(&forged), "false-positive rate", "{rate}");
        }
    }
}

#[test]
fn case_10_any_planned_items_keep_the_statistics_in_range() {
    for whole in [write(&bloom(HashAlgorithm::Xxh3)), write(&classic(HashAlgorithm::Xxh3))] {
        for items in [0, 1, 1 << 53, u64::MAX] {
            let forged = with(&whole, forge::PLANNED_ITEMS, &u64::to_le_bytes(items));
            let stats = read(&forged).unwrap().set.stats();
            assert!((0.0..=1.0).contains(&stats.expected_false_positive_rate), "{stats:?}");
            assert!((0.0..=1.0).contains(&stats.current_false_positive_rate), "{stats:?}");
        }
    }
}

#[test]
fn case_10_item_counts_close_to_overflow_are_refused() {
    for (_, whole) in snapshots() {
        for items in [1 << 63, u64::MAX] {
            let forged = with(&whole, forge::ITEMS, &u64::to_le_bytes(items));
            assert_eq!(refused(&forged), "items");
        }
        let max = with(&whole, forge::ITEMS, &u64::to_le_bytes((1 << 63) - 1));
        let set = read(&max).unwrap().set;
        set.insert(b"one more");
        assert_eq!(set.stats().items, 1 << 63);
    }
}

#[test]
fn case_10_nonzero_unused_fields_are_refused() {
    for (_, whole) in snapshots() {
        for at in
            (forge::NON_INTEGER_KEYS + 1..forge::ITEMS).chain(forge::RESERVED..forge::POSITION)
        {
            assert_eq!(refused(&with(&whole, at, &[0x80])), "reserved bytes");
        }
        assert_eq!(refused(&with(&whole, forge::NON_INTEGER_KEYS, &[2])), "non-integer keys");
    }
    assert_eq!(refused(&with(&write(&exact()), forge::NON_INTEGER_KEYS, &[1])), "non-integer keys");
    for whole in [write(&bitmap()), write(&exact())] {
        let hashed =
            [forge::HASH_ALGORITHM..forge::HASH_ALGORITHM + 1, forge::FINGERPRINT..forge::SIZE];
        for at in hashed.into_iter().flatten().chain(forge::HASHES..forge::NON_INTEGER_KEYS) {
            assert_eq!(
                refused(&with(&whole, at, &[1])),
                "hash algorithm, secret or parameters",
                "{at}"
            );
        }
    }
}

/// `whole` with another body, and matching size and body length.
fn with_body(whole: &[u8], size: u64, body: &[u8]) -> Vec<u8> {
    let mut forged = whole[..forge::body(whole)].to_vec();
    forged.extend(body);
    forged.extend([0; 16]);
    forged = with(&forged, forge::SIZE, &size.to_le_bytes());
    with(&forged, forge::BODY_LENGTH, &(body.len() as u64).to_le_bytes())
}

#[test]
fn case_10_invalid_bitmap_chunks_are_refused() {
    let whole = write(&Bitmap::new());
    let array = |number: u64, positions: &[u16]| {
        let mut chunk = (number << 16 | positions.len() as u64).to_le_bytes().to_vec();
        positions.iter().for_each(|position| chunk.extend(position.to_le_bytes()));
        chunk
    };
    let page = |number: u64, bits: usize| {
        let mut chunk = (number << 16).to_le_bytes().to_vec();
        chunk.extend((0..8192).map(|at| if at < bits / 8 { 0xff } else { 0 }));
        chunk
    };
    let (first, second) = (array(5, &[1, 2, 9]), page(6, 4104));
    let valid = with_body(&whole, 2, &[&first[..], &second].concat());
    let AnySet::Bitmap(bitmap) = read(&valid).unwrap().set else { unreachable!("another family") };
    assert_eq!((bitmap.len(), bitmap.stats().items), (3 + 4104, 3 + 4104));
    assert!(bitmap.contains_id(5 << 16 | 9) && bitmap.contains_id(6 << 16 | 4103));

    let many: Vec<u16> = (0..4097).collect();
    let cases = [
        (2, [&second[..], &first].concat()),
        (2, [&first[..], &first].concat()),
        (1, array(5, &[2, 1])),
        (1, array(5, &[2, 2])),
        (1, array(5, &many)),
        (1, page(5, 4096)),
        (1, page(5, 0)),
        (1, first[..first.len() - 2].to_vec()),
        (1, first[..first.len() - 1].to_vec()),
        (1, second[..second.len() - 1].to_vec()),
        (1, [&first[..], &[0]].concat()),
        (1, [&first[..], &second].concat()),
        (2, [&first[..], &[0; 7]].concat()),
        (0, first.clone()),
    ];
    for (at, (size, body)) in cases.into_iter().enumerate() {
        let field = refused(&with_body(&whole, size, &body));
        assert!(field == "body" || field == "body length", "{at} {field}");
    }
    for size in [1 << 60, u64::MAX / 10 + 1, u64::MAX] {
        assert_eq!(refused(&with_body(&whole, size, &first)), "body length");
    }
}

#[test]
fn case_10_invalid_exact_set_keys_are_refused() {
    let whole = write(&ExactSet::new());
    let key = |length: u64, bytes: &[u8]| [&length.to_le_bytes(), bytes].concat();
    let valid = with_body(&whole, 3, &[key(0, b""), key(1, b"a"), key(2, b"ab")].concat());
    assert_eq!(read(&valid).unwrap().set.stats().distinct, Some(3));

    let cases = [
        (2, [key(1, b"b"), key(1, b"a")].concat()),
        (2, [key(1, b"a"), key(1, b"a")].concat()),
        (2, [key(0, b""), key(0, b"")].concat()),
        (1, key(2, b"a")),
        (1, key(u64::MAX, b"a")),
        (1, key(1 << 63, b"a")),
        (2, key(1, b"a")),
        (2, [key(1, b"a"), vec![0; 7]].concat()),
        (1, [key(1, b"a"), key(1, b"b")].concat()),
        (0, key(1, b"a")),
    ];
    for (at, (size, body)) in cases.into_iter().enumerate() {
        let field = refused(&with_body(&whole, size, &body));
        assert!(field == "body" || field == "body length", "{at} {field}");
    }
    for size in [1 << 61, u64::MAX] {
        assert_eq!(refused(&with_body(&whole, size, &key(1, b"a"))), "body length");
    }
}

#[test]
fn case_10_item_count_below_the_number_of_keys_is_raised_to_it() {
    for (whole, distinct) in [(write(&bitmap()), 5100), (write(&exact()), 102)] {
        let forged = with(&whole, forge::ITEMS, &[0; 8]);
        let stats = read(&forged).unwrap().set.stats();
        assert_eq!((stats.items, stats.distinct), (distinct, Some(distinct)));
    }
}

#[test]
fn case_10_bits_beyond_the_size_of_a_classic_filter_are_refused() {
    let whole = write(&classic(HashAlgorithm::Xxh3));
    let last = whole.len() - 17;
    assert_eq!(refused(&with(&whole, last, &[whole[last] | 0x80])), "body");
}

#[test]
fn case_10_unknown_families_are_refused_with_their_number() {
    let whole = write(&bloom(HashAlgorithm::Xxh3));
    for id in [0, 5, 255] {
        assert_eq!(error_of(&with(&whole, forge::FAMILY, &[id])), Error::SnapshotFamily { id });
    }
    // The fields don't match another known family.
    refused(&with(&whole, forge::FAMILY, &[4]));
}
