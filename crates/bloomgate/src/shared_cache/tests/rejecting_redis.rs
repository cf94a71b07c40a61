//! Servers that reject writes: full, or read-only.

use std::time::{Duration, Instant};

use bytes::Bytes;
use testbed::RedisServer;

use super::super::{RedisStore, SlotCalls as _};
use super::store_fixture::{CEILING, LONG, fresh_prefix};
use crate::error::StoreErrorKind;
use crate::key::KeyBytes;
use crate::ports::{Entry, Filled, LeaseId, Slot, SlotKey, WriteId};

struct Slots {
    value: SlotKey,
    null: SlotKey,
    empty: SlotKey,
}

/// A value, a null and nothing.
async fn filled(store: &RedisStore) -> Slots {
    let prefix = fresh_prefix();
    let slot = |id: i64| SlotKey::new(prefix.clone(), 1, KeyBytes::of(&id));
    let entries = [Entry::Value(Bytes::from_static(b"v")), Entry::Null];
    for (id, entry) in entries.into_iter().enumerate() {
        let (slot, lease) = (slot(id as i64), LeaseId::fresh());
        let leased = store.get_or_lease(&slot, lease, LONG).await.unwrap();
        assert_eq!(leased, Slot::LeaseGranted);
        let filled = store.fill(&slot, lease, entry, 7, LONG).await.unwrap();
        assert_eq!(filled, Filled::Stored);
    }
    Slots { value: slot(0), null: slot(1), empty: slot(2) }
}

/// Rule B15, and B10's case of a rejected intent.
async fn reads_go_on_and_intents_are_rejected(store: &RedisStore, slots: &Slots) {
    let get_or_lease = async |slot| store.get_or_lease(slot, LeaseId::fresh(), LONG).await.unwrap();
    let value = Slot::Value { payload: Bytes::from_static(b"v"), until: 7 };
    assert_eq!(get_or_lease(&slots.value).await, value);
    assert_eq!(store.get(&slots.value).await.unwrap(), value);
    assert_eq!(get_or_lease(&slots.null).await, Slot::Null { until: 7 });
    assert_eq!(get_or_lease(&slots.empty).await, Slot::Empty);
    assert_eq!(get_or_lease(&slots.empty).await, Slot::Empty, "nothing was leased");
    for slot in [&slots.value, &slots.empty] {
        let refused = store.put_intent(slot, WriteId::fresh(), LONG).await.unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Rejected, "{refused}");
    }
    assert_eq!(store.get(&slots.value).await.unwrap(), value);
}

#[tokio::test]
async fn a_full_server_is_read_without_leasing_and_rejects_intents() {
    let server = RedisServer::start();
    let store = RedisStore::open(&server.url()).unwrap();
    let slots = filled(&store).await;
    let (held, lease) = (SlotKey::new(fresh_prefix(), 1, KeyBytes::of(&1_i64)), LeaseId::fresh());
    let leased = store.get_or_lease(&held, lease, LONG).await.unwrap();
    assert_eq!(leased, Slot::LeaseGranted);
    server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    reads_go_on_and_intents_are_rejected(&store, &slots).await;
    let fill = store.fill(&held, lease, Entry::Null, 7, LONG).await;
    assert_eq!(fill.unwrap_err().kind(), StoreErrorKind::Rejected);
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    store.put_intent(&slots.value, WriteId::fresh(), LONG).await.unwrap();
    assert_eq!(store.get(&slots.value).await.unwrap(), Slot::WriteIntent);
}

/// An End must succeed although the server is full: the entry there is outdated.
#[tokio::test]
async fn a_full_server_still_takes_an_end_and_a_release() {
    let server = RedisServer::start();
    let store = RedisStore::open(&server.url()).unwrap();
    let prefix = fresh_prefix();
    let slot = |id: i64| SlotKey::new(prefix.clone(), 1, KeyBytes::of(&id));
    let (write, lease) = (WriteId::fresh(), LeaseId::fresh());
    store.put_intent(&slot(1), write, LONG).await.unwrap();
    let leased = store.get_or_lease(&slot(2), lease, LONG).await.unwrap();
    assert_eq!(leased, Slot::LeaseGranted);
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let ended = store.clear_intent(&slot(1), write).await;
    let released = store.release(&slot(2), lease).await;
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    let ended = (ended.map_err(|e| e.to_string()), store.get(&slot(1)).await.unwrap());
    assert_eq!(ended, (Ok(()), Slot::Empty));
    let released = (released.map_err(|e| e.to_string()), store.get(&slot(2)).await.unwrap());
    assert_eq!(released, (Ok(()), Slot::Empty));
}

#[tokio::test]
async fn a_read_only_replica_is_read_without_leasing_and_a_promoted_one_heals() {
    let (primary, replica) = (RedisServer::start(), RedisServer::start());
    let at_primary = RedisStore::open(&primary.url()).unwrap();
    let store = RedisStore::open(&replica.url()).unwrap();
    let slots = filled(&at_primary).await;
    let port = primary.port().to_string();
    replica.command(&["REPLICAOF", "127.0.0.1", &port]);
    let end = Instant::now() + CEILING;
    while !matches!(store.get(&slots.null).await, Ok(Slot::Null { .. })) {
        assert!(Instant::now() < end, "the replica doesn't follow");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    reads_go_on_and_intents_are_rejected(&store, &slots).await;
    replica.command(&["REPLICAOF", "NO", "ONE"]);
    store.put_intent(&slots.value, WriteId::fresh(), LONG).await.unwrap();
    let leased = store.get_or_lease(&slots.empty, LeaseId::fresh(), LONG).await;
    assert_eq!(leased.unwrap(), Slot::LeaseGranted);
}

/// The connection to a demoted primary is replaced, but not at each request when the address leads
/// to a replica for good.
#[tokio::test]
async fn a_replica_is_not_flooded_with_connections() {
    let replica = RedisServer::start();
    // With an unreachable primary the replica keeps its content, and is read-only.
    let store = RedisStore::open(&replica.url()).unwrap();
    let slots = filled(&store).await;
    let port = testbed::net::free_port().to_string();
    replica.command(&["REPLICAOF", "127.0.0.1", &port]);
    let connections = || -> u64 {
        let info = replica.command(&["INFO", "stats"]);
        let line = info.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
        line.unwrap().trim().parse().unwrap()
    };
    let before = connections();
    for _ in 0..200 {
        let found = store.get_or_lease(&slots.null, LeaseId::fresh(), LONG).await;
        assert_eq!(found.unwrap(), Slot::Null { until: 7 });
    }
    let opened = connections() - before;
    assert!(opened <= 50, "{opened} connections for 200 requests");
}
