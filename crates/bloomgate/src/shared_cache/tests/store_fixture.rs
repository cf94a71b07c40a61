//! A store under test, with slots of its own and time that passes.

use std::sync::Arc;
#[cfg(feature = "redis")]
use std::sync::LazyLock;
use std::time::Duration;

#[cfg(feature = "redis")]
use testbed::RedisServer;

use super::super::MemoryStore;
#[cfg(feature = "redis")]
use super::super::RedisStore;
use crate::clock::{Clock, ManualTime};
use crate::key::{Key, KeyBytes};
use crate::ports::{SlotKey, Store, WriteId};

/// A time to live that no test outlives.
pub(super) const LONG: Duration = Duration::from_secs(60);
/// A time to live that a test waits for.
pub(super) const SHORT: Duration = Duration::from_millis(100);
/// The longest wait for what should happen soon.
#[cfg(feature = "redis")]
pub(super) const CEILING: Duration = Duration::from_secs(20);

/// The server that all tests of this process share. Each test has slots of its own in it.
#[cfg(feature = "redis")]
pub(super) static REDIS: LazyLock<RedisServer> = LazyLock::new(RedisServer::start);

enum Behind {
    Memory(Arc<MemoryStore>, ManualTime),
    #[cfg(feature = "redis")]
    Redis,
}

/// A store under test.
pub(super) struct StoreFixture {
    pub(super) store: Arc<dyn Store>,
    /// The prefix of this test's slots.
    pub(super) prefix: Arc<str>,
    behind: Behind,
}

pub(super) fn fresh_prefix() -> Arc<str> {
    Arc::from(format!("bloomgate:test-{}:", WriteId::fresh().to_hex()))
}

impl StoreFixture {
    pub(super) fn memory() -> Self {
        let (clock, time) = Clock::manual();
        let store = Arc::new(MemoryStore::new(clock));
        Self {
            store: Arc::clone(&store) as Arc<dyn Store>,
            prefix: fresh_prefix(),
            behind: Behind::Memory(store, time),
        }
    }

    #[cfg(feature = "redis")]
    fn redis_at(url: &str) -> Self {
        Self {
            store: Arc::new(RedisStore::open(url).unwrap()),
            prefix: fresh_prefix(),
            behind: Behind::Redis,
        }
    }

    #[cfg(feature = "redis")]
    pub(super) fn redis() -> Self {
        Self::redis_at(&REDIS.url())
    }

    /// The same server with RESP3, where an empty reply looks different.
    #[cfg(feature = "redis")]
    pub(super) fn redis_resp3() -> Self {
        Self::redis_at(&format!("{}?protocol=resp3", REDIS.url()))
    }

    #[cfg(feature = "redis")]
    pub(super) fn redis_unix() -> Self {
        Self::redis_at(&REDIS.unix_url())
    }

    pub(super) fn slot<K: Key>(&self, key: &K) -> SlotKey {
        SlotKey::new(Arc::clone(&self.prefix), 1, KeyBytes::of(key))
    }

    /// The name in Redis of a slot with a short key.
    #[cfg(feature = "redis")]
    pub(super) fn name<K: Key>(&self, key: &K) -> Vec<u8> {
        let key = key.with_bytes(<[u8]>::to_vec);
        [self.prefix.as_bytes(), b"k", &key].concat()
    }

    /// Lets at least `time` pass.
    pub(super) async fn pass(&self, time: Duration) {
        match &self.behind {
            Behind::Memory(_, manual) => manual.advance(time),
            #[cfg(feature = "redis")]
            Behind::Redis => tokio::time::sleep(time + Duration::from_millis(20)).await,
        }
    }

    /// Drops the slot of a short key, as an eviction does.
    pub(super) fn evict<K: Key>(&self, key: &K) {
        match &self.behind {
            Behind::Memory(store, _) => store.evict(&self.slot(key)),
            #[cfg(feature = "redis")]
            Behind::Redis => {
                let command = [&b"DEL"[..], &self.name(key)];
                let deleted = REDIS.try_command(&command, CEILING).unwrap();
                assert_eq!(deleted.to_string(), "1");
            }
        }
    }
}
