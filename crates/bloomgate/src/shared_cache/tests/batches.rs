//! Several operations at once on a Redis server: one round trip, failures one by one.

use bytes::Bytes;
use testbed::{RedisReply, RedisServer};

use super::super::{RedisStore, SlotCalls as _};
use super::store_fixture::{CEILING, LONG, fresh_prefix};
use crate::error::StoreErrorKind;
use crate::key::KeyBytes;
use crate::ports::{Entry, Filled, LeaseId, Slot, SlotKey, SlotOp, SlotReply, Store as _, WriteId};

struct Batches {
    server: RedisServer,
    store: RedisStore,
    slots: Vec<SlotKey>,
}

impl Batches {
    fn new(slots: i64) -> Self {
        let server = RedisServer::start();
        let (store, prefix) = (RedisStore::open(&server.url()).unwrap(), fresh_prefix());
        let slots =
            (0..slots).map(|id| SlotKey::new(prefix.clone(), 1, KeyBytes::of(&id))).collect();
        Self { server, store, slots }
    }

    fn on_each(&self, op: SlotOp) -> Vec<(SlotKey, SlotOp)> {
        self.slots.iter().map(|slot| (slot.clone(), op.clone())).collect()
    }

    fn raw(&self, parts: &[&[u8]]) -> RedisReply {
        self.server.try_command(parts, CEILING).unwrap()
    }

    /// The name in Redis of a slot.
    fn name(&self, at: usize) -> Vec<u8> {
        let slot = &self.slots[at];
        [slot.prefix().as_bytes(), b"k", slot.key().as_slice()].concat()
    }
}

#[tokio::test]
async fn many_operations_need_few_reads_of_the_server() {
    let batches = Batches::new(200);
    batches.store.prepare().await.unwrap();
    let reads = || -> u64 {
        let info = batches.server.command(&["INFO", "stats"]);
        let line = info.lines().find_map(|line| line.strip_prefix("total_reads_processed:"));
        line.unwrap().trim().parse().unwrap()
    };
    let before = reads();
    let put = SlotOp::PutIntent { write: WriteId::fresh(), ttl: LONG };
    for reply in batches.store.call_many(batches.on_each(put)).await {
        assert_eq!(reply.unwrap(), SlotReply::Done);
    }
    let needed = reads() - before;
    assert!(needed < 100, "{needed} reads for 200 operations");
}

#[tokio::test]
async fn one_operation_that_fails_leaves_the_others() {
    let batches = Batches::new(3);
    batches.raw(&[b"RPUSH", &batches.name(1), b"x"]);
    let lease = LeaseId::fresh();
    for (op, expected) in [
        (SlotOp::GetOrLease { lease, ttl: LONG }, SlotReply::Slot(Slot::LeaseGranted)),
        (SlotOp::Get, SlotReply::Slot(Slot::LeaseHeld)),
        (
            SlotOp::Fill { lease, entry: Entry::Null, until: 7, ttl: LONG },
            SlotReply::Filled(Filled::Stored),
        ),
        (SlotOp::Release { lease }, SlotReply::Done),
    ] {
        let mut replies = batches.store.call_many(batches.on_each(op.clone())).await;
        let failed = replies.remove(1).unwrap_err();
        assert_eq!(failed.kind(), StoreErrorKind::Rejected, "{op:?}: {failed}");
        assert!(failed.to_string().contains("WRONGTYPE"), "{op:?}: {failed}");
        for reply in replies {
            assert_eq!(reply.unwrap(), expected, "{op:?}");
        }
    }
}

#[tokio::test]
async fn a_server_without_the_scripts_runs_a_batch_in_order() {
    let batches = Batches::new(1);
    let (slot, write) = (&batches.slots[0], WriteId::fresh());
    for _ in 0..2 {
        batches.server.command(&["SCRIPT", "FLUSH"]);
        let ops = [
            SlotOp::PutIntent { write, ttl: LONG },
            SlotOp::Get,
            SlotOp::ClearIntent { write },
            SlotOp::Get,
            SlotOp::PutIntent { write, ttl: LONG },
            SlotOp::ClearIntent { write },
        ];
        let calls = ops.map(|op| (slot.clone(), op)).to_vec();
        let replies = batches.store.call_many(calls).await.into_iter();
        let replies: Vec<SlotReply> = replies.map(Result::unwrap).collect();
        let expected = [
            SlotReply::Done,
            SlotReply::Slot(Slot::WriteIntent),
            SlotReply::Done,
            SlotReply::Slot(Slot::Empty),
            SlotReply::Done,
            SlotReply::Done,
        ];
        assert_eq!(replies, expected);
    }
}

/// Rule B15, for several slots at once.
#[tokio::test]
async fn a_full_server_is_read_without_leasing_by_a_batch() {
    let batches = Batches::new(3);
    let (store, lease) = (&batches.store, LeaseId::fresh());
    for (slot, entry) in [(0, Entry::Value(Bytes::from_static(b"v"))), (2, Entry::Null)] {
        let slot = &batches.slots[slot];
        let leased = store.get_or_lease(slot, lease, LONG).await.unwrap();
        assert_eq!(leased, Slot::LeaseGranted);
        let filled = store.fill(slot, lease, entry, 7, LONG).await.unwrap();
        assert_eq!(filled, Filled::Stored);
    }
    batches.server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let mut calls = batches.on_each(SlotOp::GetOrLease { lease, ttl: LONG });
    let put = SlotOp::PutIntent { write: WriteId::fresh(), ttl: LONG };
    calls.insert(1, (batches.slots[1].clone(), put));
    let mut replies = store.call_many(calls).await;
    let rejected = replies.remove(1).unwrap_err();
    assert_eq!(rejected.kind(), StoreErrorKind::Rejected, "{rejected}");
    let found: Vec<SlotReply> = replies.into_iter().map(Result::unwrap).collect();
    let expected = [
        Slot::Value { payload: Bytes::from_static(b"v"), until: 7 },
        Slot::Empty,
        Slot::Null { until: 7 },
    ];
    assert_eq!(found, expected.map(SlotReply::Slot));
}

#[tokio::test]
async fn a_batch_for_a_server_that_is_gone_fails_as_a_whole() {
    let batches = Batches::new(3);
    batches.server.kill();
    let replies = batches.store.call_many(batches.on_each(SlotOp::Get)).await;
    assert_eq!(replies.len(), 3);
    for reply in replies {
        assert!(reply.unwrap_err().is_outage());
    }
}

#[tokio::test]
async fn clones_share_one_connection() {
    let batches = Batches::new(1);
    let connections = || -> u64 {
        let info = batches.server.command(&["INFO", "stats"]);
        let line = info.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
        line.unwrap().trim().parse().unwrap()
    };
    batches.store.prepare().await.unwrap();
    let before = connections();
    let lease = LeaseId::fresh();
    for _ in 0..20 {
        let clone = batches.store.clone();
        let found = clone.get_or_lease(&batches.slots[0], lease, LONG).await.unwrap();
        assert!(matches!(found, Slot::LeaseGranted | Slot::LeaseHeld));
    }
    // Each look at the number is a connection itself.
    assert!(connections() - before <= 1, "a clone connected");
}

/// A position in one server's keys means nothing to the one that took its place.
#[tokio::test]
async fn a_clearing_starts_over_at_another_server() {
    let batches = Batches::new(100);
    let lease = LeaseId::fresh();
    let leased = batches.on_each(SlotOp::GetOrLease { lease, ttl: LONG });
    assert!(batches.store.call_many(leased).await.iter().all(Result::is_ok));
    let mut from = Some("0123456789abcdef0123456789abcdef01234567:127".to_owned());
    let mut removed = 0;
    while from.is_some() {
        let step = batches.store.clear_step(batches.slots[0].prefix(), from.as_deref()).await;
        let step = step.unwrap();
        removed += step.removed;
        from = step.next;
    }
    assert_eq!(removed, 100);
}

#[tokio::test]
async fn a_clearing_removes_keys_of_other_types_and_formats() {
    let batches = Batches::new(3);
    batches.raw(&[b"RPUSH", &batches.name(0), b"x"]);
    batches.raw(&[b"SET", &batches.name(1), b""]);
    batches.raw(&[b"SET", &batches.name(2), b"hello"]);
    assert_eq!(batches.store.clear(batches.slots[0].prefix()).await.unwrap(), 3);
    assert_eq!(batches.raw(&[b"DBSIZE"]), RedisReply::Integer(0));
}
