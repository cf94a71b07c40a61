//! The path of a request: gate, local cache, flight, shared cache, bulkhead, loader.

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument as _;

use super::codec::{decode, encode};
use super::lease::Lease;
use super::{Inner, Value};
use crate::answer::{Answer, Tier, Verdict};
use crate::error::{ReadError, StoreError};
use crate::flight::{KeyVersion, Leader, Role};
use crate::gate::Known;
use crate::key::{Key, KeyBytes};
use crate::loader::Share;
use crate::local_cache::Local;
use crate::ports::{Entry, Filled, Slot};

/// The outcome of a flight.
pub(crate) type Outcome<V> = Result<Answer<V>, ReadError>;

/// Waits between looks at a slot that another reader has leased (rule B11: wait a little).
const LEASE_HELD_WAITS: [Duration; 4] = [
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(40),
];

/// The result of a look-up in the shared cache.
enum SharedLookup<V> {
    Hit(Answer<V>, Duration),
    /// Load; with a lease, fill as well.
    Miss(Option<Lease>),
    /// A write is open, maybe one that only the slot tells of: load, and publish nothing (rule B11).
    WriteIntent,
}

impl<K: Key, V> Inner<K, V> {
    /// The gate's verdict, counted.
    pub(crate) fn check(&self, key: &K) -> Verdict {
        let verdict = self.gate.check(key);
        let counts = &self.counts.verdicts;
        match verdict {
            Verdict::Absent => counts.refused.add(),
            Verdict::Maybe => counts.passed_maybe.add(),
            Verdict::Unknown(_) => counts.passed_unknown.add(),
        }
        verdict
    }
}

impl<K: Key, V: Value> Inner<K, V> {
    /// What lies behind the gate.
    pub(crate) async fn answer(self: &Arc<Self>, key: &K) -> Outcome<V> {
        let bytes = KeyBytes::of(key);
        match self.local.lookup(&bytes) {
            Some(Local::Value(value)) => {
                return Ok(Answer::Found { value, tier: Tier::Local, stale: false });
            }
            Some(Local::Null) => return Ok(Answer::Absent(Tier::Local)),
            None => {}
        }
        let waiter = match self.flights.join_or_lead(&bytes, self.local.version(&bytes)) {
            Role::Follower(waiter) => waiter,
            Role::Leader(waiter, leader) => {
                let (inner, key, bytes) = (Arc::clone(self), key.clone(), bytes.clone());
                // In the caller's span, so that what the loader logs is found with the request.
                let flight = async move { inner.run_flight(&key, bytes, leader).await };
                tokio::spawn(flight.in_current_span());
                waiter
            }
            Role::Full => {
                self.counts.loader.shed.add();
                return Err(ReadError::Shed { waited: Duration::ZERO });
            }
        };
        // A flight that is lost without a word panicked outside the loader.
        match waiter.outcome().await.unwrap_or(Err(ReadError::LoadPanicked)) {
            Err(error) if error.is_temporary() => match self.local.stale(&bytes) {
                Some(value) => Ok(Answer::Found { value, tier: Tier::Local, stale: true }),
                None => Err(error),
            },
            outcome => outcome,
        }
    }

    /// One flight, in a task of its own.
    async fn run_flight(self: Arc<Self>, key: &K, bytes: KeyBytes, leader: Leader<Outcome<V>>) {
        let version = leader.version();
        let known = self.gate.known(&bytes);
        // The gate passed this id because it is open; while it was closed, it would not.
        let unseen = known == Known::No && !self.forced_open;
        let (mut lease, mut publishes) = (None, true);
        // Rule A4: while the key is open, both caches are skipped.
        // Rule C26: the shared cache is used under a lease only.
        if !version.open && self.shared.is_some() && self.gate.spares_caches() {
            // First of all: a caller that joins after a write without an intent must not find this
            // flight on its way to the slot, past the check whether it may read it.
            leader.start();
            // Rule A4 once more: a write may have begun since the flight was made, and its intent be
            // lost. Whoever joined until now counts on this look.
            if !self.gate.open_writes().is_open(&bytes) && !self.bypass.contains(&bytes) {
                let may_lease = !unseen || self.sentinels.has_room();
                match self.look_up_shared(&bytes, version, may_lease).await {
                    // A process that was paused meanwhile may hold what a write has outdated.
                    SharedLookup::Hit(..) if !self.gate.spares_caches() => {}
                    SharedLookup::Hit(answer, ttl) => {
                        self.publish_local((key, &bytes), version, &answer, ttl);
                        leader.publish(Ok(answer));
                        return;
                    }
                    SharedLookup::Miss(leased) => lease = leased,
                    SharedLookup::WriteIntent => publishes = false,
                }
            }
        }
        let share = if unseen { Share::Unseen } else { Share::Full };
        let row = match self.loader.load(key, share, || leader.start()).await {
            Ok(row) => row,
            Err(error) => {
                // Rule B12: the lease goes back, and nothing is remembered.
                leader.publish(Err(error));
                if let Some(lease) = lease {
                    lease.release().await;
                }
                return;
            }
        };
        let (answer, ttl) = match row {
            Some(value) => {
                let answer =
                    Answer::Found { value: Arc::new(value), tier: Tier::Loader, stale: false };
                (answer, self.shortened(self.settings.value_ttl))
            }
            None => (Answer::Absent(Tier::Loader), self.shortened(self.settings.null_ttl)),
        };
        if publishes {
            self.publish_local((key, &bytes), version, &answer, ttl);
        }
        leader.publish(Ok(answer.clone()));
        if let Some(lease) = lease {
            self.fill(&bytes, version, lease, &answer, ttl).await;
        }
    }

    /// Reads the slot, leasing it if it is empty and `may_lease`.
    async fn look_up_shared(
        self: &Arc<Self>,
        key: &KeyBytes,
        version: KeyVersion,
        may_lease: bool,
    ) -> SharedLookup<V> {
        let Some(shared) = &self.shared else {
            return SharedLookup::Miss(None);
        };
        let counts = &self.counts.shared;
        let slot = self.slots.of(key);
        for wait in LEASE_HELD_WAITS.into_iter().map(Some).chain([None]) {
            // Rule A13: no lease once a write of ours has begun.
            let lease = (may_lease && self.local.is_current(key, version))
                .then(|| Lease::on(shared, slot.clone()));
            let found = match &lease {
                Some(lease) => shared.get_or_lease(&slot, lease.id, self.settings.lease_ttl).await,
                None => shared.get(&slot).await,
            };
            let outcome = self.interpret(found);
            let lease = match (lease, &outcome) {
                // After a failure too: the server may have given the lease and not said so.
                (Some(lease), SlotOutcome::LeaseGranted | SlotOutcome::Failed) => Some(lease),
                (Some(lease), _) => {
                    lease.disarm();
                    None
                }
                (None, _) => None,
            };
            match (outcome, wait) {
                (SlotOutcome::Hit(answer, ttl), _) => return SharedLookup::Hit(answer, ttl),
                (SlotOutcome::LeaseGranted, _) => {
                    counts.misses.add();
                    return SharedLookup::Miss(lease);
                }
                (SlotOutcome::Failed, _) => return SharedLookup::Miss(None),
                (SlotOutcome::WriteIntent, _) => {
                    counts.misses.add();
                    return SharedLookup::WriteIntent;
                }
                (SlotOutcome::LeaseHeld, Some(wait)) => self.clock.sleep(wait).await,
                (SlotOutcome::LeaseHeld, None) | (SlotOutcome::Nothing, _) => break,
            }
        }
        counts.misses.add();
        SharedLookup::Miss(None)
    }

    /// What a slot means here. An entry's end is clipped to our own time to live, whatever the
    /// clock of who wrote it says.
    fn interpret(&self, found: Result<Slot, StoreError>) -> SlotOutcome<V> {
        let counts = &self.counts.shared;
        let left = |until: u64, most: Duration| {
            let left = Duration::from_millis(until.saturating_sub(self.clock.unix_ms())).min(most);
            (!left.is_zero()).then_some(left)
        };
        match found {
            Ok(Slot::Value { payload, until }) => {
                let Some(ttl) = left(until, self.settings.value_ttl) else {
                    return SlotOutcome::Nothing;
                };
                match decode(&payload) {
                    Some(value) => {
                        counts.value_hits.add();
                        let value = Arc::new(value);
                        let answer = Answer::Found { value, tier: Tier::Shared, stale: false };
                        SlotOutcome::Hit(answer, ttl)
                    }
                    None => {
                        counts.undecodable.add();
                        SlotOutcome::Nothing
                    }
                }
            }
            Ok(Slot::Null { until }) => match left(until, self.settings.null_ttl) {
                Some(ttl) => {
                    counts.null_hits.add();
                    SlotOutcome::Hit(Answer::Absent(Tier::Shared), ttl)
                }
                None => SlotOutcome::Nothing,
            },
            Ok(Slot::LeaseGranted) => SlotOutcome::LeaseGranted,
            Ok(Slot::Empty) => SlotOutcome::Nothing,
            Ok(Slot::WriteIntent) => SlotOutcome::WriteIntent,
            Ok(Slot::LeaseHeld) => SlotOutcome::LeaseHeld,
            Err(_counted_by_the_shared_cache) => SlotOutcome::Failed,
        }
    }

    fn publish_local(
        &self,
        key: (&K, &KeyBytes),
        since: KeyVersion,
        answer: &Answer<V>,
        ttl: Duration,
    ) {
        match answer {
            Answer::Found { value, .. } => {
                self.local.publish_value(key, since, Arc::clone(value), ttl);
            }
            Answer::Absent(_) => self.local.publish_null(key, since, ttl),
        }
    }

    /// Puts what was loaded in place of our lease (rules B12, A13).
    async fn fill(
        &self,
        key: &KeyBytes,
        since: KeyVersion,
        lease: Lease,
        answer: &Answer<V>,
        ttl: Duration,
    ) {
        let entry = match answer {
            Answer::Found { value, .. } => encode(&**value).map(Entry::Value),
            // Behind an open gate every id of an attack comes this far: beyond their budget,
            // sentinels stay local.
            Answer::Absent(_) => self.sentinels.take().then_some(Entry::Null),
        };
        let (Some(entry), Some(shared)) = (entry, &self.shared) else {
            return lease.release().await;
        };
        if !self.local.is_current(key, since) || !self.gate.spares_caches() {
            return lease.release().await;
        }
        let null = entry == Entry::Null;
        let until =
            self.clock.unix_ms().saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        match shared.fill(&lease.slot, lease.id, entry, until, ttl).await {
            Ok(Filled::Stored) => {
                if null {
                    self.counts.shared.nulls_stored.add();
                }
                lease.disarm();
            }
            Ok(Filled::LeaseLost) => lease.disarm(),
            // The fill may have been refused with the lease still standing.
            Err(_) => lease.release().await,
        }
    }

    /// A time to live shortened at random, so that what was stored together doesn't expire
    /// together; never longer than asked for.
    fn shortened(&self, ttl: Duration) -> Duration {
        let off = self.settings.jitter * rand::random::<f64>();
        ttl.mul_f64(1.0 - off).max(Duration::from_millis(1))
    }
}

enum SlotOutcome<V> {
    Hit(Answer<V>, Duration),
    LeaseGranted,
    LeaseHeld,
    WriteIntent,
    Nothing,
    Failed,
}
