//! The keys in Redis: names, expiries, foreign content.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use testbed::RedisReply;

use super::super::SlotCalls as _;
use super::store_fixture::{CEILING, LONG, REDIS, StoreFixture};
use crate::error::StoreErrorKind;
use crate::ports::{Entry, Filled, LeaseId, Slot, WriteId};

fn raw(parts: &[&[u8]]) -> RedisReply {
    REDIS.try_command(parts, CEILING).unwrap()
}

fn pttl(name: &[u8]) -> i64 {
    match raw(&[b"PTTL", name]) {
        RedisReply::Integer(ms) => ms,
        other => panic!("{other:?}"),
    }
}

async fn put(fixture: &StoreFixture, id: i64, entry: Entry, until: u64) {
    let (slot, lease) = (fixture.slot(&id), LeaseId::fresh());
    let leased = fixture.store.get_or_lease(&slot, lease, LONG).await.unwrap();
    assert_eq!(leased, Slot::LeaseGranted);
    let filled = fixture.store.fill(&slot, lease, entry, until, LONG).await;
    assert_eq!(filled.unwrap(), Filled::Stored);
}

#[tokio::test]
async fn case_28_every_key_in_redis_expires() {
    let fixture = StoreFixture::redis();
    let expires = |name: &[u8]| {
        let left = pttl(name);
        assert!(left > 0 && left <= 20 * 60 * 1_000, "{left}");
    };
    let slot = fixture.slot(&1_i64);
    let leased = fixture.store.get_or_lease(&slot, LeaseId::fresh(), LONG).await;
    assert_eq!(leased.unwrap(), Slot::LeaseGranted);
    expires(&fixture.name(&1_i64));
    put(&fixture, 2, Entry::Null, 7).await;
    expires(&fixture.name(&2_i64));
    put(&fixture, 3, Entry::Value(Bytes::from_static(b"v")), 7).await;
    expires(&fixture.name(&3_i64));
    let (one, two) = (WriteId::fresh(), WriteId::fresh());
    for write in [one, two] {
        fixture.store.put_intent(&fixture.slot(&4_i64), write, LONG).await.unwrap();
        expires(&fixture.name(&4_i64));
    }
    fixture.store.clear_intent(&fixture.slot(&4_i64), one).await.unwrap();
    expires(&fixture.name(&4_i64));
    // A time to live below a millisecond must not become none at all.
    let slot = fixture.slot(&5_i64);
    let tiny = Duration::from_nanos(1);
    fixture.store.put_intent(&slot, one, tiny).await.unwrap();
    assert!(pttl(&fixture.name(&5_i64)) <= 1);
    assert_ne!(pttl(&fixture.name(&5_i64)), -1);
    let slot = fixture.slot(&6_i64);
    let leased = fixture.store.get_or_lease(&slot, LeaseId::fresh(), Duration::ZERO).await;
    assert_eq!(leased.unwrap(), Slot::LeaseGranted);
    assert_ne!(pttl(&fixture.name(&6_i64)), -1);
}

#[tokio::test]
async fn times_to_live_are_clipped_to_what_redis_takes() {
    let fixture = StoreFixture::redis();
    let (slot, lease, write) = (fixture.slot(&1_i64), LeaseId::fresh(), WriteId::fresh());
    let leased = fixture.store.get_or_lease(&slot, lease, Duration::MAX).await;
    assert_eq!(leased.unwrap(), Slot::LeaseGranted);
    let filled = fixture.store.fill(&slot, lease, Entry::Null, u64::MAX, Duration::MAX);
    assert_eq!(filled.await.unwrap(), Filled::Stored);
    fixture.store.put_intent(&slot, write, Duration::MAX).await.unwrap();
    assert_eq!(fixture.store.get(&slot).await.unwrap(), Slot::WriteIntent);
    fixture.store.clear_intent(&slot, write).await.unwrap();
    assert_eq!(fixture.store.get(&slot).await.unwrap(), Slot::Empty);
}

#[tokio::test]
async fn case_46_names_in_redis_are_short_for_keys_of_any_length() {
    let fixture = StoreFixture::redis();
    for length in [0, 1, 200, 201, 1 << 20] {
        let slot = fixture.slot(&vec![b'x'; length]);
        let leased = fixture.store.get_or_lease(&slot, LeaseId::fresh(), LONG).await;
        assert_eq!(leased.unwrap(), Slot::LeaseGranted);
    }
    let RedisReply::List(names) = raw(&[b"KEYS", format!("{}*", fixture.prefix).as_bytes()]) else {
        panic!("no list")
    };
    assert_eq!(names.len(), 5);
    for name in names {
        let RedisReply::Bulk(name) = name else { panic!("no name") };
        assert!(name.len() <= fixture.prefix.len() + 1 + 200);
    }
}

/// Keys that try to look like another key's name: short, long, and short ones that are the digest
/// of a long one.
#[test]
fn case_46_names_of_different_keys_never_collide() {
    use sha2::Digest as _;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fixture = runtime.block_on(async { StoreFixture::redis() });
    let short = proptest::collection::vec(any::<u8>(), 0..=200);
    let long = proptest::collection::vec(any::<u8>(), 201..400);
    let mut runner = TestRunner::new(Config::with_cases(60));
    runner
        .run(&(short, long), |(short, long)| {
            let digest = sha2::Sha256::digest(&long).to_vec();
            let mut keys = vec![
                long.clone(),
                [&long[..], b"\0"].concat(),
                digest.clone(),
                [b"h", &digest[..]].concat(),
                long[..200].to_vec(),
                [b"k", &short[..]].concat(),
                short,
            ];
            keys.retain(|key| key.len() != 201 || *key == long);
            keys.sort();
            keys.dedup();
            runtime.block_on(async {
                for key in &keys {
                    let slot = fixture.slot(key);
                    fixture.store.clear_intent(&slot, WriteId::fresh()).await.unwrap();
                }
                for key in &keys {
                    let slot = fixture.slot(key);
                    let leased = fixture.store.get_or_lease(&slot, LeaseId::fresh(), LONG).await;
                    prop_assert_eq!(leased.unwrap(), Slot::LeaseGranted);
                }
                Ok(())
            })
        })
        .unwrap();
}

#[tokio::test]
async fn case_19_an_entry_that_belongs_to_another_key_is_not_served() {
    let fixture = StoreFixture::redis();
    put(&fixture, 1, Entry::Value(Bytes::from_static(b"of 1")), 7).await;
    put(&fixture, 2, Entry::Null, 7).await;
    for other in [1_i64, 2] {
        let copied = raw(&[b"COPY", &fixture.name(&other), &fixture.name(&3_i64), b"REPLACE"]);
        assert_eq!(copied, RedisReply::Integer(1));
        let slot = fixture.slot(&3_i64);
        assert_eq!(fixture.store.get(&slot).await.unwrap(), Slot::Empty);
        let read = fixture.store.get_or_lease(&slot, LeaseId::fresh(), LONG).await;
        assert_eq!(read.unwrap(), Slot::LeaseGranted);
    }
}

#[tokio::test]
async fn malformed_content_is_not_served_and_is_replaced_under_a_lease_or_by_a_write() {
    let fixture = StoreFixture::redis();
    let malformed: [&[u8]; 10] = [
        b"",
        b"hello",
        b"{}",
        b"null",
        b"V",
        b"N",
        b"V1234567",
        b"N1234567abcdefg1234567",
        b"\0\0\0",
        b"N12345678abcdefgh12345678rest",
    ];
    for (id, content) in malformed.into_iter().enumerate() {
        let (id, write, lease) = (id as i64, WriteId::fresh(), LeaseId::fresh());
        let slot = fixture.slot(&id);
        raw(&[b"SET", &fixture.name(&id), content]);
        assert_eq!(fixture.store.get(&slot).await.unwrap(), Slot::Empty);
        let read = fixture.store.get_or_lease(&slot, lease, LONG).await;
        assert_eq!(read.unwrap(), Slot::LeaseGranted, "{content:?}");
        let filled = fixture.store.fill(&slot, lease, Entry::Null, 7, LONG).await;
        assert_eq!(filled.unwrap(), Filled::Stored);
        raw(&[b"SET", &fixture.name(&id), content]);
        fixture.store.put_intent(&slot, write, LONG).await.unwrap();
        assert_eq!(fixture.store.get(&slot).await.unwrap(), Slot::WriteIntent);
        fixture.store.clear_intent(&slot, write).await.unwrap();
        let read = fixture.store.get_or_lease(&slot, lease, LONG).await;
        assert_eq!(read.unwrap(), Slot::LeaseGranted);
    }
}

#[tokio::test]
async fn a_malformed_write_intent_is_still_a_write_intent() {
    let fixture = StoreFixture::redis();
    let slot = fixture.slot(&1_i64);
    for stored in ["M", "Mnonsense", "Mabc:;", "M:12;", "Mabc:9999999999999;;;x"] {
        raw(&[b"SET", &fixture.name(&1_i64), stored.as_bytes()]);
        assert_eq!(fixture.store.get(&slot).await.unwrap(), Slot::WriteIntent);
        let write = WriteId::fresh();
        fixture.store.put_intent(&slot, write, LONG).await.unwrap();
        assert_eq!(fixture.store.get(&slot).await.unwrap(), Slot::WriteIntent);
        fixture.store.clear_intent(&slot, write).await.unwrap();
    }
}

#[tokio::test]
async fn a_key_of_another_type_is_an_error_of_reads_and_a_write_takes_its_place() {
    let fixture = StoreFixture::redis();
    let (slot, lease, write) = (fixture.slot(&1_i64), LeaseId::fresh(), WriteId::fresh());
    raw(&[b"RPUSH", &fixture.name(&1_i64), b"x"]);
    let store = &fixture.store;
    let errors = [
        store.get(&slot).await.err(),
        store.get_or_lease(&slot, lease, LONG).await.err(),
        store.fill(&slot, lease, Entry::Null, 7, LONG).await.err(),
        store.release(&slot, lease).await.err(),
    ];
    for error in errors {
        let error = error.unwrap();
        assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
        assert!(!error.is_outage());
        assert!(error.to_string().contains("WRONGTYPE"), "{error}");
    }
    // Rules B10 and B14.
    store.clear_intent(&slot, write).await.unwrap();
    assert_eq!(store.get(&slot).await.unwrap(), Slot::Empty);
    raw(&[b"RPUSH", &fixture.name(&1_i64), b"x"]);
    store.put_intent(&slot, write, LONG).await.unwrap();
    assert_eq!(store.get(&slot).await.unwrap(), Slot::WriteIntent);
}
