//! A [`Store`] in memory, for tests that need millions of interleavings; it passes the same
//! conformance tests as Redis.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use parking_lot::Mutex;

use crate::clock::{Clock, Moment};
use crate::error::StoreError;
use crate::ports::{Entry, Filled, InstanceId, LeaseId, Peer, Slot, SlotKey, Store, WriteId};

#[derive(Clone, Debug)]
enum Content {
    Entry(Entry, u64),
    Lease(LeaseId),
    WriteIntent(HashMap<WriteId, Moment>),
}

#[derive(Debug, Default)]
struct State {
    slots: HashMap<SlotKey, (Content, Moment)>,
    members: HashMap<(String, InstanceId), (u64, Moment)>,
}

/// The shared cache in memory.
#[derive(Debug)]
pub struct MemoryStore {
    clock: Clock,
    state: Mutex<State>,
}

impl MemoryStore {
    /// An empty store on this clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// Drops a slot, as an eviction does.
    pub fn evict(&self, slot: &SlotKey) {
        self.state.lock().slots.remove(slot);
    }

    /// Drops everything, as `FLUSHALL` does.
    pub fn flush(&self) {
        *self.state.lock() = State::default();
    }

    /// Number of slots that hold something live.
    #[must_use]
    pub fn len(&self) -> usize {
        let now = self.clock.now();
        self.state.lock().slots.values().filter(|(_, until)| now < *until).count()
    }

    /// True if no slot holds anything live.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn step<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut State, Moment) -> T,
    ) -> BoxFuture<'_, Result<T, StoreError>> {
        let now = self.clock.now();
        let mut state = self.state.lock();
        Box::pin(ready(Ok(step(&mut state, now))))
    }
}

impl State {
    fn live(&mut self, slot: &SlotKey, now: Moment) -> Option<&mut Content> {
        if self.slots.get(slot).is_some_and(|(_, until)| *until <= now) {
            self.slots.remove(slot);
        }
        self.slots.get_mut(slot).map(|(content, _)| content)
    }

    fn read(&mut self, slot: &SlotKey, now: Moment) -> Slot {
        match self.live(slot, now) {
            None => Slot::Empty,
            Some(Content::Lease(_)) => Slot::LeaseHeld,
            Some(Content::WriteIntent(_)) => Slot::WriteIntent,
            Some(Content::Entry(Entry::Null, until)) => Slot::Null { until: *until },
            Some(Content::Entry(Entry::Value(payload), until)) => {
                Slot::Value { payload: payload.clone(), until: *until }
            }
        }
    }

    fn holds_lease(&mut self, slot: &SlotKey, lease: LeaseId, now: Moment) -> bool {
        matches!(self.live(slot, now), Some(Content::Lease(holder)) if *holder == lease)
    }

    fn store_intent(&mut self, slot: &SlotKey, mut intent: HashMap<WriteId, Moment>, now: Moment) {
        intent.retain(|_, deadline| now < *deadline);
        match intent.values().max().copied() {
            Some(latest) => {
                self.slots.insert(slot.clone(), (Content::WriteIntent(intent), latest));
            }
            None => {
                self.slots.remove(slot);
            }
        }
    }
}

impl Store for MemoryStore {
    fn prepare(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }

    fn get_or_lease<'a>(
        &'a self,
        slot: &'a SlotKey,
        lease: LeaseId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Slot, StoreError>> {
        self.step(|state, now| match state.read(slot, now) {
            Slot::Empty => {
                state.slots.insert(slot.clone(), (Content::Lease(lease), now + ttl));
                Slot::LeaseGranted
            }
            found => found,
        })
    }

    fn get<'a>(&'a self, slot: &'a SlotKey) -> BoxFuture<'a, Result<Slot, StoreError>> {
        self.step(|state, now| state.read(slot, now))
    }

    fn fill<'a>(
        &'a self,
        slot: &'a SlotKey,
        lease: LeaseId,
        entry: Entry,
        until: u64,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Filled, StoreError>> {
        self.step(|state, now| {
            if !state.holds_lease(slot, lease, now) {
                return Filled::LeaseLost;
            }
            state.slots.insert(slot.clone(), (Content::Entry(entry, until), now + ttl));
            Filled::Stored
        })
    }

    fn release<'a>(
        &'a self,
        slot: &'a SlotKey,
        lease: LeaseId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.step(|state, now| {
            if state.holds_lease(slot, lease, now) {
                state.slots.remove(slot);
            }
        })
    }

    fn put_intent<'a>(
        &'a self,
        slot: &'a SlotKey,
        write: WriteId,
        lives: Duration,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.step(|state, now| {
            let mut intent = match state.live(slot, now) {
                Some(Content::WriteIntent(intent)) => intent.clone(),
                _ => HashMap::new(),
            };
            intent.insert(write, now + lives);
            state.store_intent(slot, intent, now);
        })
    }

    fn clear_intent<'a>(
        &'a self,
        slot: &'a SlotKey,
        write: WriteId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.step(|state, now| {
            let mut intent = match state.live(slot, now) {
                Some(Content::WriteIntent(intent)) => intent.clone(),
                _ => HashMap::new(),
            };
            intent.remove(&write);
            state.store_intent(slot, intent, now);
        })
    }

    fn heartbeat<'a>(
        &'a self,
        namespace: &'a str,
        member: InstanceId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Vec<Peer>, StoreError>> {
        self.step(|state, now| {
            state.members.retain(|_, (_, last)| now.since(*last) <= ttl);
            let mine = state.members.entry((namespace.to_owned(), member)).or_insert((0, now));
            *mine = (mine.0 + 1, now);
            let others = state.members.iter();
            others
                .filter(|((space, other), _)| space == namespace && *other != member)
                .map(|((_, other), (heartbeats, _))| Peer {
                    member: other.to_hex(),
                    heartbeats: *heartbeats,
                })
                .collect()
        })
    }

    fn leave<'a>(
        &'a self,
        namespace: &'a str,
        member: InstanceId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.step(|state, _| {
            state.members.remove(&(namespace.to_owned(), member));
        })
    }
}
