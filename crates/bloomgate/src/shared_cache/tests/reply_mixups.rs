//! Replies under cancellation: each call gets its own or none.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use testbed::RedisServer;

use super::super::{RedisStore, SlotCalls as _};
use super::store_fixture::{LONG, fresh_prefix};
use crate::key::KeyBytes;
use crate::ports::{Entry, Filled, LeaseId, Slot, SlotKey};

const KEYS: i64 = 50;

fn payload(id: i64) -> Bytes {
    Bytes::from(format!("the row of {id}, and of no other").repeat(1 + id as usize % 7))
}

async fn filled(store: &RedisStore) -> Arc<[SlotKey]> {
    let prefix = fresh_prefix();
    let slots: Arc<[SlotKey]> =
        (0..KEYS).map(|id| SlotKey::new(prefix.clone(), 1, KeyBytes::of(&id))).collect();
    for (id, slot) in slots.iter().enumerate() {
        let lease = LeaseId::fresh();
        let leased = store.get_or_lease(slot, lease, LONG).await.unwrap();
        assert_eq!(leased, Slot::LeaseGranted);
        let entry = Entry::Value(payload(id as i64));
        let filled = store.fill(slot, lease, entry, 7, LONG).await.unwrap();
        assert_eq!(filled, Filled::Stored);
    }
    slots
}

fn matches(id: i64, found: &Slot) -> bool {
    *found == Slot::Value { payload: payload(id), until: 7 }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_19_cancelled_requests_shift_no_replies() {
    let server = RedisServer::start();
    let store = Arc::new(RedisStore::open(&server.url()).unwrap());
    let slots = filled(&store).await;
    let reading = {
        let (store, slots) = (Arc::clone(&store), Arc::clone(&slots));
        tokio::spawn(async move {
            for round in 0..400_i64 {
                let reads = (0..KEYS).map(|n| {
                    let id = (n + round) % KEYS;
                    let (store, slot) = (&store, &slots[id as usize]);
                    async move {
                        let found = match id % 2 {
                            0 => store.get(slot).await,
                            _ => store.get_or_lease(slot, LeaseId::fresh(), LONG).await,
                        };
                        (id, found.unwrap())
                    }
                });
                for (id, found) in join_all(reads).await {
                    assert!(matches(id, &found), "{id}: {found:?}");
                }
            }
        })
    };
    for n in 0..1_000_i64 {
        let (store, slots) = (Arc::clone(&store), Arc::clone(&slots));
        let id = n % KEYS;
        let cancelled = tokio::spawn(async move {
            let slot = &slots[id as usize];
            match n % 3 {
                0 => drop(store.get(slot).await),
                1 => drop(store.get_or_lease(slot, LeaseId::fresh(), LONG).await),
                _ => drop(store.release(slot, LeaseId::fresh()).await),
            }
        });
        // Cancels it before it starts, while it is sent, before its reply, or after it.
        for _ in 0..rand::random_range(0..4_u32) {
            tokio::task::yield_now().await;
        }
        if n % 4 == 0 {
            tokio::time::sleep(Duration::from_micros(rand::random_range(0..300))).await;
        }
        cancelled.abort();
    }
    reading.await.unwrap();
}

#[tokio::test]
async fn case_19_late_replies_are_not_given_to_other_calls() {
    let server = RedisServer::start();
    let store = RedisStore::open(&server.url()).unwrap();
    let slots = filled(&store).await;
    for _ in 0..3 {
        server.freeze();
        // These are sent, and their callers are gone before the replies come.
        for slot in &slots[..10] {
            let read = tokio::time::timeout(Duration::from_millis(5), store.get(slot)).await;
            assert!(read.is_err());
        }
        server.thaw();
        for id in (0..KEYS).rev() {
            let found = store.get(&slots[id as usize]).await.unwrap();
            assert!(matches(id, &found), "{id}: {found:?}");
        }
    }
}
