//! The bulkhead: a limit of concurrent loads, with a queue that has a deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Share;
use crate::clock::Clock;
use crate::error::ReadError;

/// The bulkhead's limits; all at least 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BulkheadLimits {
    /// Loads at a time.
    pub(crate) permits: usize,
    /// Of these, for ids never seen to exist.
    pub(crate) unseen: usize,
    /// Longest wait for a permit.
    pub(crate) queue: Duration,
    /// Most waiters at a time.
    pub(crate) waiters: usize,
}

/// Two shares of one set of permits, with a queue that has a deadline.
#[derive(Debug)]
pub(crate) struct Bulkhead {
    permits: Arc<Semaphore>,
    unseen: Arc<Semaphore>,
    waiting: AtomicUsize,
    limits: BulkheadLimits,
    clock: Clock,
}

/// A permit of the bulkhead, released when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    _share: Option<OwnedSemaphorePermit>,
    _permit: OwnedSemaphorePermit,
}

impl Bulkhead {
    pub(crate) fn new(limits: BulkheadLimits, clock: Clock) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(limits.permits)),
            unseen: Arc::new(Semaphore::new(limits.unseen)),
            waiting: AtomicUsize::new(0),
            limits,
            clock,
        }
    }

    /// Waits for a permit, first come, first served within a share.
    pub(crate) async fn enter(&self, share: Share) -> Result<Permit, ReadError> {
        let _waiting = Waiting::count(&self.waiting);
        if self.waiting.load(Ordering::Relaxed) > self.limits.waiters {
            return Err(ReadError::Shed { waited: Duration::ZERO });
        }
        let entering = async {
            // The share first: an unseen id that waits must not hold a permit meanwhile.
            let share = match share {
                Share::Full => None,
                Share::Unseen => Some(Arc::clone(&self.unseen).acquire_owned().await.ok()?),
            };
            let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
            Some(Permit { _share: share, _permit: permit })
        };
        match self.clock.timeout(self.limits.queue, entering).await {
            Ok(Some(permit)) => Ok(permit),
            // The semaphores are never closed, so `None` doesn't happen; shedding is safe anyway.
            Ok(None) | Err(_) => Err(ReadError::Shed { waited: self.limits.queue }),
        }
    }
}

/// Counts a waiter until it is dropped.
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
