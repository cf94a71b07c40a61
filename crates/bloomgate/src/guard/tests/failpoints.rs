//! Places at which a test can hold up whoever comes by: how interleavings are forced.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use super::within;

/// A place on the way of a request, a write or a scan. "Before" means that nothing has happened
/// yet, "after" that it has and the answer is on its way back.
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
    Joining,
    Backplane,
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
    /// How many more it holds up.
    to_hold: Mutex<usize>,
    arrived: watch::Sender<usize>,
    go: Semaphore,
}

/// All permits of one test.
#[derive(Clone, Debug, Default)]
pub(super) struct Failpoints(Arc<Mutex<HashMap<At, Arc<Failpoint>>>>);

impl Failpoints {
    /// Holds up everyone who comes by from now on.
    pub(super) fn hold(&self, at: At) -> Held {
        self.hold_next(at, usize::MAX)
    }

    /// Holds up the next one only.
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
        // A failpoint that is taken away closes its semaphore, and everyone goes.
        if let Ok(permit) = failpoint.go.acquire().await {
            permit.forget();
        }
    }
}

/// A failpoint that is in force. Dropped, it lets everyone go.
#[derive(Debug)]
pub(super) struct Held {
    failpoints: Failpoints,
    at: At,
    failpoint: Arc<Failpoint>,
}

impl Held {
    /// Waits until somebody has been held up here.
    pub(super) async fn arrived(&self) {
        self.arrivals(1).await;
    }

    /// Waits until so many have been held up here, in all.
    pub(super) async fn arrivals(&self, many: usize) {
        let mut arrived = self.failpoint.arrived.subscribe();
        let _ = within(arrived.wait_for(|arrived| *arrived >= many)).await;
    }

    /// How many have been held up here so far.
    pub(super) fn count(&self) -> usize {
        *self.failpoint.arrived.borrow()
    }

    /// Lets one go.
    pub(super) fn let_one_go(&self) {
        self.failpoint.go.add_permits(1);
    }

    /// Lets everyone go and holds nobody up any more.
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
