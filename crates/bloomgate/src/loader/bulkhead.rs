//! How many loads run at a time, and how long one may wait for a place.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Share;
use crate::clock::Clock;
use crate::error::Error;

/// The bulkhead's limits; all at least 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BulkheadLimits {
    /// Loads at a time.
    pub(crate) places: usize,
    /// Of these, for ids never seen to exist.
    pub(crate) unlikely: usize,
    /// Longest wait for a place.
    pub(crate) queue: Duration,
    /// Most waiters at a time.
    pub(crate) waiters: usize,
}

/// Two shares of one set of places, with a queue that has a deadline.
#[derive(Debug)]
pub(crate) struct Bulkhead {
    places: Arc<Semaphore>,
    unlikely: Arc<Semaphore>,
    waiting: AtomicUsize,
    limits: BulkheadLimits,
    clock: Clock,
}

/// A place in the bulkhead, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _share: Option<OwnedSemaphorePermit>,
    _place: OwnedSemaphorePermit,
}

impl Bulkhead {
    pub(crate) fn new(limits: BulkheadLimits, clock: Clock) -> Self {
        Self {
            places: Arc::new(Semaphore::new(limits.places)),
            unlikely: Arc::new(Semaphore::new(limits.unlikely)),
            waiting: AtomicUsize::new(0),
            limits,
            clock,
        }
    }

    /// Waits for a place, first come, first served within a share.
    pub(crate) async fn enter(&self, share: Share) -> Result<Place, Error> {
        let _waiting = Waiting::count(&self.waiting);
        if self.waiting.load(Ordering::Relaxed) > self.limits.waiters {
            return Err(Error::Shed { waited: Duration::ZERO });
        }
        let entering = async {
            // The share first: an unlikely id that waits must not hold a place meanwhile.
            let share = match share {
                Share::Full => None,
                Share::Unlikely => Some(Arc::clone(&self.unlikely).acquire_owned().await.ok()?),
            };
            let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
            Some(Place { _share: share, _place: place })
        };
        match self.clock.timeout(self.limits.queue, entering).await {
            Ok(Some(place)) => Ok(place),
            // The semaphores are never closed, so `None` doesn't happen; shedding is safe anyway.
            Ok(None) | Err(_) => Err(Error::Shed { waited: self.limits.queue }),
        }
    }
}

/// Counts a waiter for as long as it lives, however it goes away.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn count(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
