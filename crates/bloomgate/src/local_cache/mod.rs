//! The local cache: rows and sentinels, in separate budgets.
//!
//! moka only stores. Whether an entry is still good is decided by the injected clock and the
//! entry's own end; moka's time to live only bounds how long an ended entry takes memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use moka::Expiry;
use moka::sync::Cache;

use crate::clock::{Clock, Moment};
use crate::key::KeyBytes;

/// Capacities for rows and for sentinels, and how long a row may be served past its end when the database
/// can't be asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalLimits {
    pub(crate) values: u64,
    pub(crate) nulls: u64,
    pub(crate) stale_if_error: Duration,
}

/// One entry: the key as its user wrote it, what is known of it, and until when.
struct Held<K, T> {
    key: K,
    what: T,
    until: Moment,
    /// How long moka is to keep it.
    keep: Duration,
}

impl<K: Clone, T: Clone> Clone for Held<K, T> {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), what: self.what.clone(), until: self.until, keep: self.keep }
    }
}

/// moka's lifetime of an entry: its own `keep`.
struct EntryLifetime;

impl<K, T> Expiry<KeyBytes, Held<K, T>> for EntryLifetime {
    fn expire_after_create(&self, _: &KeyBytes, held: &Held<K, T>, _: Instant) -> Option<Duration> {
        Some(held.keep)
    }

    fn expire_after_update(
        &self,
        _: &KeyBytes,
        held: &Held<K, T>,
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(held.keep)
    }
}

/// What the local cache has under a key.
pub(crate) enum Local<V> {
    Value(Arc<V>),
    Null,
}

/// The local cache.
pub(crate) struct LocalCache<K, V> {
    values: Cache<KeyBytes, Held<K, Arc<V>>>,
    nulls: Cache<KeyBytes, Held<K, ()>>,
    stale_if_error: Duration,
    clock: Clock,
}

impl<K, V> std::fmt::Debug for LocalCache<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalCache").finish_non_exhaustive()
    }
}

fn cache<T: Clone + Send + Sync + 'static>(entries: u64) -> Cache<KeyBytes, T>
where
    EntryLifetime: Expiry<KeyBytes, T>,
{
    Cache::builder().max_capacity(entries).expire_after(EntryLifetime).build()
}

impl<K, V> LocalCache<K, V>
where
    K: Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    pub(crate) fn new(limits: LocalLimits, clock: Clock) -> Self {
        Self {
            values: cache(limits.values),
            nulls: cache(limits.nulls),
            stale_if_error: limits.stale_if_error,
            clock,
        }
    }

    /// What is known and still good.
    pub(crate) fn get(&self, key: &KeyBytes) -> Option<Local<V>> {
        let now = self.clock.now();
        if let Some(held) = self.values.get(key)
            && now < held.until
        {
            return Some(Local::Value(held.what));
        }
        let held = self.nulls.get(key)?;
        (now < held.until).then_some(Local::Null)
    }

    /// A row whose time is over but which no write has touched, for when the database fails.
    pub(crate) fn stale(&self, key: &KeyBytes) -> Option<Arc<V>> {
        let held = self.values.get(key)?;
        (self.clock.now() < held.until + self.stale_if_error).then_some(held.what)
    }

    pub(crate) fn put_value(&self, bytes: KeyBytes, key: &K, value: Arc<V>, ttl: Duration) {
        self.nulls.invalidate(&bytes);
        let held = Held {
            key: key.clone(),
            what: value,
            until: self.clock.now() + ttl,
            keep: ttl.saturating_add(self.stale_if_error),
        };
        self.values.insert(bytes, held);
    }

    pub(crate) fn put_null(&self, bytes: KeyBytes, key: &K, ttl: Duration) {
        self.values.invalidate(&bytes);
        let held = Held { key: key.clone(), what: (), until: self.clock.now() + ttl, keep: ttl };
        self.nulls.insert(bytes, held);
    }

    /// The keys of which something is held, fresh or not; one that is put meanwhile may be missing.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (KeyBytes, K)> {
        let values = self.values.iter().map(|(bytes, held)| ((*bytes).clone(), held.key));
        let nulls = self.nulls.iter().map(|(bytes, held)| ((*bytes).clone(), held.key));
        values.chain(nulls)
    }

    /// Drops whatever is known of the key.
    pub(crate) fn forget(&self, key: &KeyBytes) {
        self.values.invalidate(key);
        self.nulls.invalidate(key);
    }

    /// Drops everything.
    pub(crate) fn forget_all(&self) {
        self.values.invalidate_all();
        self.nulls.invalidate_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn fixture() -> (LocalCache<i64, String>, crate::clock::ManualTime) {
        let (clock, time) = Clock::manual();
        let limits = LocalLimits { values: 100, nulls: 100, stale_if_error: 60 * SECOND };
        (LocalCache::new(limits, clock), time)
    }

    fn key(id: i64) -> KeyBytes {
        KeyBytes::of(&id)
    }

    #[test]
    fn a_value_is_good_until_its_end_and_stale_for_a_while_after() {
        let (cache, time) = fixture();
        cache.put_value(key(1), &1, Arc::new("a".into()), 10 * SECOND);
        time.advance(9 * SECOND);
        assert!(matches!(cache.get(&key(1)), Some(Local::Value(_))));
        time.advance(SECOND);
        assert!(cache.get(&key(1)).is_none());
        assert!(cache.stale(&key(1)).is_some());
        time.advance(60 * SECOND);
        assert!(cache.stale(&key(1)).is_none());
    }

    // moka counts by a clock of its own, which the manual one doesn't move.
    #[test]
    fn the_storage_keeps_a_value_past_its_end_for_as_long_as_it_may_be_served_stale() {
        let (cache, time) = fixture();
        let ttl = Duration::from_millis(5);
        cache.put_value(key(1), &1, Arc::new("a".into()), ttl);
        std::thread::sleep(20 * ttl);
        cache.values.run_pending_tasks();
        time.advance(ttl);
        assert!(cache.get(&key(1)).is_none());
        assert!(cache.stale(&key(1)).is_some());
    }

    #[test]
    fn a_sentinel_ends_and_is_never_served_stale() {
        let (cache, time) = fixture();
        cache.put_value(key(1), &1, Arc::new("a".into()), SECOND);
        cache.put_null(key(1), &1, SECOND);
        assert!(matches!(cache.get(&key(1)), Some(Local::Null)));
        time.advance(SECOND);
        assert!(cache.get(&key(1)).is_none());
        assert!(cache.stale(&key(1)).is_none());
    }

    #[test]
    fn forgetting_takes_the_stale_value_too() {
        let (cache, time) = fixture();
        cache.put_value(key(1), &1, Arc::new("a".into()), SECOND);
        time.advance(SECOND);
        cache.forget(&key(1));
        assert!(cache.stale(&key(1)).is_none());
    }

    #[test]
    fn case_28_a_flood_of_sentinels_evicts_no_value() {
        let (cache, _time) = fixture();
        for id in 0..50 {
            cache.put_value(key(id), &id, Arc::new("a".into()), SECOND);
        }
        for id in 1_000..21_000 {
            cache.put_null(key(id), &id, SECOND);
        }
        cache.nulls.run_pending_tasks();
        assert!(cache.nulls.entry_count() <= 100);
        assert!((0..50).all(|id| matches!(cache.get(&key(id)), Some(Local::Value(_)))));
    }
}
