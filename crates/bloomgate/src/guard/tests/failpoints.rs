//! Named points at which a test holds calls up, to force an interleaving.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use super::within;

/// A point in a request, a write or a scan. "Before" means that the operation has not happened
/// yet, "after" that it has and that its result has not been returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum At {
    BeforeLoad,
    AfterLoad,
    BeforeRead,
    AfterRead,
    BeforeFill,
    AfterFill,
    BeforeRelease,
    BeforePutIntent,
    AfterPutIntent,
    BeforeClearIntent,
    AfterClearIntent,
    /// Writes may not begin yet.
    ReadyForWrites,
    BeginOnBackplane,
    Counting,
    Quiescing,
    /// The scan has taken its snapshot of the table.
    AfterSnapshot,
    /// The scan is about to hand over its next chunk.
    BeforeChunk,
    /// The scan has handed over everything but its explicit end.
    BeforeEnd,
}

#[derive(Debug)]
struct Failpoint {
    /// Number of calls that it is still to hold up.
    to_hold: Mutex<usize>,
    arrived: watch::Sender<usize>,
    go: Semaphore,
}

/// All failpoints of one test.
#[derive(Clone, Debug, Default)]
pub(super) struct Failpoints(Arc<Mutex<HashMap<At, Arc<Failpoint>>>>);

impl Failpoints {
    /// Holds up every call from now on.
    pub(super) fn hold(&self, at: At) -> Held {
        self.hold_next(at, usize::MAX)
    }

    /// Holds up the next call only.
    pub(super) fn hold_one(&self, at: At) -> Held {
        self.hold_next(at, 1)
    }

    fn hold_next(&self, at: At, to_hold: usize) -> Held {
        let failpoint = Arc::new(Failpoint {
            to_hold: Mutex::new(to_hold),
            arrived: watch::Sender::new(0),
            go: Semaphore::new(0),
        });
        self.0.lock().insert(at, Arc::clone(&failpoint));
        Held { failpoints: self.clone(), at, failpoint }
    }

    /// Called by the doubles.
    pub(super) async fn pass(&self, at: At) {
        let Some(failpoint) = self.0.lock().get(&at).cloned() else {
            return;
        };
        {
            let mut to_hold = failpoint.to_hold.lock();
            if *to_hold == 0 {
                return;
            }
            *to_hold -= 1;
        }
        failpoint.arrived.send_modify(|arrived| *arrived += 1);
        // A failpoint that is taken away closes its semaphore, which releases all calls.
        if let Ok(permit) = failpoint.go.acquire().await {
            permit.forget();
        }
    }
}

/// A failpoint in force. Dropping it releases all calls.
#[derive(Debug)]
pub(super) struct Held {
    failpoints: Failpoints,
    at: At,
    failpoint: Arc<Failpoint>,
}

impl Held {
    /// Waits until one call has been held up here.
    pub(super) async fn arrived(&self) {
        self.arrivals(1).await;
    }

    /// Waits until this many calls have been held up here, in all.
    pub(super) async fn arrivals(&self, many: usize) {
        let mut arrived = self.failpoint.arrived.subscribe();
        let _ = within(arrived.wait_for(|arrived| *arrived >= many)).await;
    }

    /// Number of calls that have been held up here so far.
    pub(super) fn count(&self) -> usize {
        *self.failpoint.arrived.borrow()
    }

    /// Releases one call.
    pub(super) fn let_one_go(&self) {
        self.failpoint.go.add_permits(1);
    }

    /// Releases all calls and holds up no more.
    pub(super) fn let_all_go(self) {}
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut failpoints = self.failpoints.0.lock();
        if failpoints.get(&self.at).is_some_and(|failpoint| Arc::ptr_eq(failpoint, &self.failpoint))
        {
            failpoints.remove(&self.at);
        }
        self.failpoint.go.close();
    }
}
