//! Forged snapshots with valid checksums: every field that can't be is refused by its name.

use bloomgate_filter::{Error, Hash};

use crate::forge::{self, with};
use crate::sets::{bloom, classic, error_of, write};

/// The field that reading the forged snapshot names.
fn refused(forged: &[u8]) -> &'static str {
    match error_of(forged) {
        Error::SnapshotField { field, .. } => field,
        error => unreachable!("refused with another error: {error}"),
    }
}

#[test]
fn c10_a_hostile_size_is_refused_without_an_allocation_or_a_division_by_zero() {
    let (bloom, classic) = (write(&bloom(Hash::Xxh3)), write(&classic(Hash::Xxh3)));
    for size in [0, 1 << 57, 1 << 58, 1 << 60, 1 << 63, (1 << 63) + 1, u64::MAX] {
        let forged = with(&bloom, forge::SIZE, &u64::to_le_bytes(size));
        assert_eq!(refused(&forged), "size", "{size}");
    }
    for size in [0, u64::MAX, u64::MAX - 62] {
        let forged = with(&classic, forge::SIZE, &u64::to_le_bytes(size));
        let field = refused(&forged);
        assert!(field == "size or hashes" || field == "body length", "{size} {field}");
    }
    // Sizes that could be, but not with this body.
    for size in [1, 3, 1 << 28, 1 << 56] {
        let forged = with(&bloom, forge::SIZE, &u64::to_le_bytes(size));
        assert_eq!(refused(&forged), "body length", "{size}");
        let forged = with(&classic, forge::SIZE, &u64::to_le_bytes(size + 6));
        assert_eq!(refused(&forged), "body length", "{size}");
    }
}

#[test]
fn c10_hostile_numbers_of_hashes_are_refused() {
    let (bloom, classic) = (write(&bloom(Hash::Xxh3)), write(&classic(Hash::Xxh3)));
    for hashes in [0, 65, 1 << 31, u32::MAX] {
        let forged = with(&classic, forge::HASHES, &u32::to_le_bytes(hashes));
        assert_eq!(refused(&forged), "size or hashes");
        let forged = with(&bloom, forge::HASHES, &u32::to_le_bytes(hashes));
        assert_eq!(refused(&forged), "hashes");
    }
}

#[test]
fn c10_lengths_that_overflow_or_lie_are_refused() {
    for whole in [write(&bloom(Hash::Xxh3)), write(&classic(Hash::Xxh3))] {
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
        // Body and size may agree on a length that the snapshot doesn't have.
        let mut forged = with(&whole, forge::BODY_LENGTH, &u64::to_le_bytes(64 << 30));
        let size = if whole[forge::FAMILY] == 1 { 1 << 30 } else { 8 * (64 << 30) };
        forged = with(&forged, forge::SIZE, &u64::to_le_bytes(size));
        let error = error_of(&forged);
        assert!(matches!(error, Error::SnapshotTruncated { .. }), "{error}");
    }
}

#[test]
fn c10_rates_that_are_none_are_refused() {
    let rates = [f64::NAN, -f64::NAN, 0.0, -0.0, 1.0, 1.5, -0.1, f64::INFINITY, 5e-324, 1e-10];
    for whole in [write(&bloom(Hash::Xxh3)), write(&classic(Hash::Xxh3))] {
        for rate in rates {
            let forged = with(&whole, forge::RATE, &rate.to_le_bytes());
            assert_eq!(refused(&forged), "rate", "{rate}");
        }
    }
}

#[test]
fn c10_a_planned_number_of_items_may_be_anything_and_breaks_no_figure() {
    for whole in [write(&bloom(Hash::Xxh3)), write(&classic(Hash::Xxh3))] {
        for items in [0, 1, 1 << 53, u64::MAX] {
            let forged = with(&whole, forge::PLANNED_ITEMS, &u64::to_le_bytes(items));
            let stats = crate::sets::read(&forged).unwrap().set.into_membership().stats();
            assert!((0.0..=1.0).contains(&stats.expected_false_positive_rate), "{stats:?}");
            assert!((0.0..=1.0).contains(&stats.present_false_positive_rate), "{stats:?}");
        }
    }
}

#[test]
fn c10_counts_near_an_overflow_are_refused() {
    for whole in [write(&bloom(Hash::Xxh3)), write(&classic(Hash::Xxh3))] {
        for items in [1 << 63, u64::MAX] {
            let forged = with(&whole, forge::ITEMS, &u64::to_le_bytes(items));
            assert_eq!(refused(&forged), "items");
        }
        let most = with(&whole, forge::ITEMS, &u64::to_le_bytes((1 << 63) - 1));
        let set = crate::sets::read(&most).unwrap().set.into_membership();
        set.insert(b"one more");
        assert_eq!(set.stats().items, 1 << 63);
    }
}

#[test]
fn c10_reserved_bytes_that_are_used_are_refused() {
    for whole in [write(&bloom(Hash::Xxh3)), write(&classic(Hash::Xxh3))] {
        for at in (forge::FLAGS..forge::ITEMS).chain(forge::RESERVED..forge::POSITION) {
            assert_eq!(refused(&with(&whole, at, &[0x80])), "reserved bytes");
        }
    }
}

#[test]
fn c10_bits_beyond_the_last_one_of_a_classic_filter_are_refused() {
    let whole = write(&classic(Hash::Xxh3));
    let last = whole.len() - 17;
    assert_eq!(refused(&with(&whole, last, &[whole[last] | 0x80])), "body");
}

#[test]
fn c10_unknown_families_are_refused_by_their_number() {
    let whole = write(&bloom(Hash::Xxh3));
    for id in [0, 5, 255] {
        assert_eq!(error_of(&with(&whole, forge::FAMILY, &[id])), Error::SnapshotFamily { id });
    }
    // Of another known family, the fields don't fit.
    refused(&with(&whole, forge::FAMILY, &[4]));
}
