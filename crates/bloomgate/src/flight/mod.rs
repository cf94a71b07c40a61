//! Singleflight: one load a key at a time, which no departing caller ends.
//!
//! A flight runs in a task of its own, so that no caller's departure can kill it; callers wait for
//! its outcome. Which request may join which flight is rule A4 of the protocol.

mod generations;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::key::KeyBytes;

pub(crate) use generations::KeyGenerations;

/// What a caller knows of its key when it asks for a flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyVersion {
    /// The key's local generation, read *before* `open`: a write that begins in between shows in
    /// one of the two.
    pub(crate) generation: u64,
    /// True while a write of the key is open in this process.
    pub(crate) open: bool,
    /// False while other instances may write what is not delivered here.
    pub(crate) coherent: bool,
}

#[derive(Debug)]
struct Flight<T> {
    version: KeyVersion,
    /// Set just before the first question goes out.
    started: AtomicBool,
    outcome: watch::Sender<Option<T>>,
}

impl<T> Flight<T> {
    /// Rules A4, C20 and C26. A flight that hasn't asked anything yet will see whatever is committed by
    /// now, so any request may join it.
    fn may_be_joined(&self, by: KeyVersion) -> bool {
        // What was read while other instances could write unnoticed stays in doubt, also for a caller
        // that comes once they can't any more.
        let coherent = by.coherent && self.version.coherent;
        let calm = coherent && !by.open && !self.version.open;
        let current = calm && self.version.generation == by.generation;
        current || !self.started.load(Ordering::SeqCst)
    }
}

/// The flights under way, one a key (an outdated flight that still has waiters is off the map).
#[derive(Debug)]
pub(crate) struct Flights<T> {
    by_key: Mutex<HashMap<KeyBytes, Arc<Flight<T>>>>,
    running: AtomicUsize,
    limit: usize,
}

/// What came of asking for a flight.
#[derive(Debug)]
pub(crate) enum Role<T> {
    /// One was under way.
    Follower(Waiter<T>),
    /// The caller must run it.
    Leader(Waiter<T>, Leader<T>),
    /// As many flights are under way as are allowed.
    Full,
}

/// Waits for a flight's outcome.
#[derive(Debug)]
pub(crate) struct Waiter<T>(watch::Receiver<Option<T>>);

impl<T: Clone> Waiter<T> {
    /// The outcome; `None` if the flight was lost (its task panicked or was dropped).
    pub(crate) async fn outcome(mut self) -> Option<T> {
        self.0.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone())
    }
}

/// The duty to run a flight. However it is dropped, the slot is free again.
#[derive(Debug)]
pub(crate) struct Leader<T> {
    flights: Arc<Flights<T>>,
    key: KeyBytes,
    flight: Arc<Flight<T>>,
}

impl<T> Flights<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { by_key: Mutex::default(), running: AtomicUsize::new(0), limit }
    }

    pub(crate) fn join_or_lead(self: &Arc<Self>, key: &KeyBytes, version: KeyVersion) -> Role<T> {
        let mut by_key = self.by_key.lock();
        if let Some(flight) = by_key.get(key)
            && flight.may_be_joined(version)
        {
            return Role::Follower(Waiter(flight.outcome.subscribe()));
        }
        if self.running.load(Ordering::Relaxed) >= self.limit {
            return Role::Full;
        }
        self.running.fetch_add(1, Ordering::Relaxed);
        let (outcome, waiter) = watch::channel(None);
        let flight = Arc::new(Flight { version, started: AtomicBool::new(false), outcome });
        by_key.insert(key.clone(), Arc::clone(&flight));
        let leader = Leader { flights: Arc::clone(self), key: key.clone(), flight };
        Role::Leader(Waiter(waiter), leader)
    }

    /// Number of flights under way, outdated ones included.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }
}

impl<T> Leader<T> {
    pub(crate) fn version(&self) -> KeyVersion {
        self.flight.version
    }

    /// To be called before the first question to a cache or a database.
    pub(crate) fn start(&self) {
        self.flight.started.store(true, Ordering::SeqCst);
    }

    /// Hands the outcome to every waiter. The slot is free once the leader is dropped.
    pub(crate) fn publish(&self, outcome: T) {
        self.flight.outcome.send_replace(Some(outcome));
    }
}

impl<T> Drop for Leader<T> {
    fn drop(&mut self) {
        let mut by_key = self.flights.by_key.lock();
        if by_key.get(&self.key).is_some_and(|standing| Arc::ptr_eq(standing, &self.flight)) {
            by_key.remove(&self.key);
        }
        self.flights.running.fetch_sub(1, Ordering::Relaxed);
    }
}
