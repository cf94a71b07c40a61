//! A Redis that is gone, frozen or restarted, behind a budget and a breaker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use testbed::RedisServer;

use super::super::{RedisStore, SharedCache, SlotCalls as _};
use super::store_fixture::{CEILING, LONG, fresh_prefix};
use crate::clock::Clock;
use crate::error::StoreErrorKind;
use crate::key::KeyBytes;
use crate::ports::{Entry, Filled, LeaseId, Slot, SlotKey, Store, WriteId};
use crate::telemetry::SharedCounts;

const BUDGET: Duration = Duration::from_millis(100);
/// Far above what a call may take, far below what hangs.
const PROMPT: Duration = Duration::from_secs(5);

fn slot(id: i64) -> SlotKey {
    SlotKey::new(fresh_prefix(), 1, KeyBytes::of(&id))
}

fn shared(store: impl Store, budget: Duration) -> (SharedCache, Arc<SharedCounts>) {
    let counts = Arc::new(SharedCounts::default());
    let counted = Arc::clone(&counts);
    let shared =
        SharedCache::new("outage".into(), Arc::new(store), budget, Clock::system(), counted);
    (shared, counts)
}

/// Reads the slot until the server answers.
async fn healed(shared: &SharedCache, slot: &SlotKey) -> Slot {
    let end = Instant::now() + CEILING;
    loop {
        match shared.get(slot).await {
            Ok(found) => return found,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable_at_once() {
    for url in [
        format!("redis://127.0.0.1:{}", testbed::net::free_port()),
        "redis+unix:///tmp/there-is-no-such-socket".to_owned(),
    ] {
        let store = RedisStore::open(&url).unwrap();
        let began = Instant::now();
        let error = store.get(&slot(1)).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
        let error = store.put_intent(&slot(1), WriteId::fresh(), LONG).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
        assert!(error.is_outage());
        assert!(began.elapsed() < PROMPT);
    }
}

#[tokio::test]
async fn a_server_that_starts_late_is_found() {
    let server = RedisServer::start();
    server.kill();
    let (shared, _) = shared(RedisStore::open(&server.url()).unwrap(), PROMPT);
    assert!(shared.prepare().await.is_err());
    assert!(shared.last_error().is_some());
    server.restart();
    assert_eq!(healed(&shared, &slot(1)).await, Slot::Empty);
    assert_eq!(shared.last_error(), None);
}

#[tokio::test]
async fn a_restarted_server_is_found_and_its_scripts_are_loaded_again() {
    let server = RedisServer::start();
    let store = RedisStore::open(&server.url()).unwrap();
    let (slot, lease, write) = (slot(1), LeaseId::fresh(), WriteId::fresh());
    for round in 0..2 {
        let end = Instant::now() + CEILING;
        while let Err(error) = store.put_intent(&slot, write, LONG).await {
            assert!(Instant::now() < end, "{error}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        store.clear_intent(&slot, write).await.unwrap();
        let leased = store.get_or_lease(&slot, lease, LONG).await.unwrap();
        assert_eq!(leased, Slot::LeaseGranted);
        let filled = store.fill(&slot, lease, Entry::Null, 7, LONG).await;
        assert_eq!(filled.unwrap(), Filled::Stored, "round {round}");
        store.release(&slot, lease).await.unwrap();
        server.restart();
    }
}

#[tokio::test]
async fn scripts_that_the_server_forgot_are_loaded_again() {
    let server = RedisServer::start();
    let store = RedisStore::open(&server.url()).unwrap();
    let (slot, lease, write) = (slot(1), LeaseId::fresh(), WriteId::fresh());
    for _ in 0..3 {
        server.command(&["SCRIPT", "FLUSH"]);
        store.put_intent(&slot, write, LONG).await.unwrap();
        server.command(&["SCRIPT", "FLUSH"]);
        store.clear_intent(&slot, write).await.unwrap();
        let leased = store.get_or_lease(&slot, lease, LONG).await.unwrap();
        assert_eq!(leased, Slot::LeaseGranted);
        server.command(&["SCRIPT", "FLUSH"]);
        store.release(&slot, lease).await.unwrap();
        assert_eq!(store.get(&slot).await.unwrap(), Slot::Empty);
    }
}

#[tokio::test]
async fn connections_that_the_server_closes_heal() {
    let server = RedisServer::start();
    let (shared, _) = shared(RedisStore::open(&server.url()).unwrap(), PROMPT);
    for _ in 0..5 {
        assert_eq!(healed(&shared, &slot(1)).await, Slot::Empty);
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    }
    assert_eq!(healed(&shared, &slot(1)).await, Slot::Empty);
}

#[tokio::test]
async fn case_20_a_frozen_server_costs_a_few_budgets_and_then_nothing_and_heals() {
    let server = RedisServer::start();
    let (shared, counts) = shared(RedisStore::open(&server.url()).unwrap(), BUDGET);
    let (slot, lease) = (slot(1), LeaseId::fresh());
    assert_eq!(healed(&shared, &slot).await, Slot::Empty);
    let leased = shared.get_or_lease(&slot, lease, LONG).await.unwrap();
    assert_eq!(leased, Slot::LeaseGranted);
    let value = Entry::Value(Bytes::from_static(b"v"));
    let filled = shared.fill(&slot, lease, value, 7, LONG).await.unwrap();
    assert_eq!(filled, Filled::Stored);

    let errors_before = counts.errors.get();
    server.freeze();
    let began = Instant::now();
    let mut timed_out = 0;
    for _ in 0..500 {
        let error = shared.get(&slot).await.unwrap_err();
        assert!(error.is_outage());
        if error.kind() == StoreErrorKind::TimedOut {
            timed_out += 1;
        }
    }
    // Three budgets before the breaker opens; after that, one probe each quarter of a second.
    assert!((3..100).contains(&timed_out), "{timed_out}");
    assert!(began.elapsed() < CEILING);
    assert_eq!(counts.errors.get() - errors_before, 500);
    assert!(shared.last_error().is_some());

    server.thaw();
    let Slot::Value { payload, .. } = healed(&shared, &slot).await else {
        panic!("the value is gone")
    };
    assert_eq!(&payload[..], b"v");
    assert_eq!(shared.last_error(), None);
}

#[tokio::test]
async fn an_open_breaker_lets_one_request_try_and_skips_the_others() {
    let server = RedisServer::start();
    server.kill();
    let (shared, _) = shared(RedisStore::open(&server.url()).unwrap(), PROMPT);
    for _ in 0..3 {
        assert!(shared.get(&slot(1)).await.is_err());
    }
    let error = shared.get(&slot(1)).await.unwrap_err();
    assert!(error.to_string().contains("skipped"), "{error}");
    // A rejection is an answer: it doesn't open the breaker.
    server.restart();
    assert_eq!(healed(&shared, &slot(1)).await, Slot::Empty);
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    for _ in 0..10 {
        let refused = shared.put_intent(&slot(1), WriteId::fresh(), LONG).await;
        assert_eq!(refused.unwrap_err().kind(), StoreErrorKind::Rejected);
    }
    assert_eq!(shared.get(&slot(1)).await.unwrap(), Slot::Empty);
}
