//! Tests of the hash table.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;

fn table(capacity: usize) -> Table<u64> {
    Table::new(capacity, RandomState::new())
}

#[test]
fn table_finds_every_inserted_item() {
    let table = table(30);
    for item in 0..30 {
        assert!(!table.contains(&item));
        assert_eq!(table.insert(item), Ok(()));
        assert!((0..=item).all(|item| table.contains(&item)));
    }
    assert_eq!(table.len(), 30);
    assert_eq!(table.items().copied().collect::<BTreeSet<_>>(), (0..30).collect());
}

#[test]
fn full_table_returns_the_item() {
    for capacity in [0, 1, 2, 3, 7] {
        let table = table(capacity);
        for item in 0..capacity as u64 {
            assert_eq!(table.insert(item), Ok(()));
        }
        assert_eq!(table.insert(99), Err(99));
        assert!(!table.contains(&99));
        assert_eq!(
            (table.len(), table.capacity(), table.slots()),
            (capacity, capacity, 2 * capacity)
        );
    }
}

#[test]
fn resized_table_holds_the_same_items() {
    let small = table(5);
    for item in 0..5 {
        small.insert(item).unwrap();
    }
    for capacity in [0, 5, 6, 100] {
        let resized = small.resized(capacity);
        assert_eq!(resized.capacity(), capacity.max(5));
        assert_eq!(resized.len(), 5);
        assert!((0..5).all(|item| resized.contains(&item)));
        assert!(!resized.contains(&5));
    }
    assert_eq!((table(0).slots(), table(0).bytes()), (0, 0));
}

#[test]
fn table_of_byte_strings_is_searched_by_slice() {
    let table: Table<Arc<[u8]>> = Table::new(4, RandomState::new());
    table.insert(Arc::from(&b"a"[..])).unwrap();
    assert!(table.contains(&b"a"[..]));
    assert!(!table.contains(&b""[..]));
}
