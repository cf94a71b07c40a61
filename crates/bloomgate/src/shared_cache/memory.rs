//! A [`Store`] in memory, for tests that need millions of interleavings.
//!
//! It passes the same conformance tests as Redis.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use crate::clock::{Clock, Moment};
use crate::error::StoreError;
use crate::key::KeyBytes;
use crate::ports::{
    ClearStep, Entry, Filled, LeaseId, MAX_INTENT_WRITES, Slot, SlotKey, SlotOp, SlotReply, Store,
    WriteId,
};

#[derive(Clone, Debug)]
enum Content {
    /// With its schema and its end in Unix ms.
    Entry(Entry, u64, u64),
    Lease(LeaseId),
    WriteIntent(Intent),
}

/// The open writes of a key.
#[derive(Clone, Debug, Default)]
struct Intent {
    writes: HashMap<WriteId, Moment>,
    /// The latest deadline of those past the ones that are told apart.
    rest: Option<Moment>,
}

impl Intent {
    fn latest(&self) -> Option<Moment> {
        self.writes.values().copied().chain(self.rest).max()
    }

    fn add(&mut self, write: WriteId, deadline: Moment) {
        self.writes.remove(&write);
        if self.writes.len() < MAX_INTENT_WRITES {
            self.writes.insert(write, deadline);
        } else {
            self.rest = self.rest.max(Some(deadline));
        }
    }
}

/// Prefix and key of a slot: its name, for callers of any schema.
type Name = (Arc<str>, KeyBytes);

#[derive(Debug, Default)]
struct State {
    /// Contents, with when they expire.
    slots: HashMap<Name, (Content, Moment)>,
}

fn name_of(slot: &SlotKey) -> Name {
    (Arc::from(slot.prefix()), slot.key().clone())
}

/// The shared cache in memory. Clones share one content.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    clock: Clock,
    state: Arc<Mutex<State>>,
}

impl MemoryStore {
    /// An empty store on this clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, state: Arc::default() }
    }

    /// Drops a slot, as an eviction does.
    pub fn evict(&self, slot: &SlotKey) {
        self.state.lock().slots.remove(&name_of(slot));
    }

    /// Drops everything, as `FLUSHALL` does.
    pub fn flush(&self) {
        *self.state.lock() = State::default();
    }

    /// Number of slots that aren't empty.
    #[must_use]
    pub fn len(&self) -> usize {
        let now = self.clock.now();
        self.state.lock().slots.values().filter(|(_, expires)| now < *expires).count()
    }

    /// True if every slot is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes one step when it is first polled.
    fn step<'a, T: Send + 'a>(
        &'a self,
        step: impl FnOnce(&mut State, Moment) -> T + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move { Ok(step(&mut self.state.lock(), self.clock.now())) })
    }
}

impl State {
    fn live(&mut self, slot: &SlotKey, now: Moment) -> Option<&mut Content> {
        let name = name_of(slot);
        if self.slots.get(&name).is_some_and(|(_, expires)| *expires <= now) {
            self.slots.remove(&name);
        }
        self.slots.get_mut(&name).map(|(content, _)| content)
    }

    fn read(&mut self, slot: &SlotKey, now: Moment) -> Slot {
        match self.live(slot, now) {
            None => Slot::Empty,
            Some(Content::Lease(_)) => Slot::LeaseHeld,
            Some(Content::WriteIntent(_)) => Slot::WriteIntent,
            // Of a build with another schema.
            Some(Content::Entry(_, schema, _)) if *schema != slot.schema() => Slot::Empty,
            Some(Content::Entry(Entry::Null, _, until)) => Slot::Null { until: *until },
            Some(Content::Entry(Entry::Value(payload), _, until)) => {
                Slot::Value { payload: payload.clone(), until: *until }
            }
        }
    }

    fn holds_lease(&mut self, slot: &SlotKey, lease: LeaseId, now: Moment) -> bool {
        matches!(self.live(slot, now), Some(Content::Lease(holder)) if *holder == lease)
    }

    /// The open writes of the slot's intent; none if something else is there.
    fn intent(&mut self, slot: &SlotKey, now: Moment) -> Intent {
        match self.live(slot, now) {
            Some(Content::WriteIntent(intent)) => intent.clone(),
            _ => Intent::default(),
        }
    }

    fn store_intent(&mut self, slot: &SlotKey, mut intent: Intent, now: Moment) {
        intent.writes.retain(|_, deadline| now < *deadline);
        intent.rest = intent.rest.filter(|deadline| now < *deadline);
        match intent.latest() {
            Some(latest) => {
                self.slots.insert(name_of(slot), (Content::WriteIntent(intent), latest));
            }
            None => {
                self.slots.remove(&name_of(slot));
            }
        }
    }

    fn apply(&mut self, slot: &SlotKey, op: SlotOp, now: Moment) -> SlotReply {
        match op {
            SlotOp::Get => return SlotReply::Slot(self.read(slot, now)),
            SlotOp::GetOrLease { lease, ttl } => {
                let found = match self.read(slot, now) {
                    Slot::Empty => {
                        self.slots.insert(name_of(slot), (Content::Lease(lease), now + ttl));
                        Slot::LeaseGranted
                    }
                    found => found,
                };
                return SlotReply::Slot(found);
            }
            SlotOp::Fill { lease, entry, until, ttl } => {
                if !self.holds_lease(slot, lease, now) {
                    return SlotReply::Filled(Filled::LeaseLost);
                }
                let content = Content::Entry(entry, slot.schema(), until);
                self.slots.insert(name_of(slot), (content, now + ttl));
                return SlotReply::Filled(Filled::Stored);
            }
            SlotOp::Release { lease } => {
                if self.holds_lease(slot, lease, now) {
                    self.slots.remove(&name_of(slot));
                }
            }
            SlotOp::PutIntent { write, ttl } => {
                let mut intent = self.intent(slot, now);
                intent.writes.retain(|_, deadline| now < *deadline);
                intent.add(write, now + ttl);
                self.store_intent(slot, intent, now);
            }
            SlotOp::ClearIntent { write } => {
                let mut intent = self.intent(slot, now);
                intent.writes.remove(&write);
                self.store_intent(slot, intent, now);
            }
        }
        SlotReply::Done
    }
}

impl Store for MemoryStore {
    fn prepare(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.step(|_, _| ())
    }

    fn endpoint(&self) -> String {
        "memory".to_owned()
    }

    fn call<'a>(
        &'a self,
        slot: &'a SlotKey,
        op: SlotOp,
    ) -> BoxFuture<'a, Result<SlotReply, StoreError>> {
        self.step(|state, now| state.apply(slot, op, now))
    }

    fn clear_step<'a>(
        &'a self,
        prefix: &'a str,
        _from: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ClearStep, StoreError>> {
        self.step(move |state, now| {
            state.slots.retain(|_, (_, expires)| now < *expires);
            let before = state.slots.len();
            state.slots.retain(|slot, (content, _)| {
                &*slot.0 != prefix || matches!(content, Content::WriteIntent(_))
            });
            ClearStep::new((before - state.slots.len()) as u64, None)
        })
    }
}
