//! The end of the link's lease, which every refusal reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::{COARSE_LAG, Clock, Moment};

/// No end: nothing is leased.
const NEVER: u64 = u64::MAX;
/// An end that has always passed.
const ENDED: u64 = 0;

/// When the lease of one link ends, shared by the views that were published under it.
///
/// A void replaces it by another one, so that a thread that was preempted with an older view in
/// hand finds that view's lease ended, whatever has been renewed since.
#[derive(Clone, Debug)]
pub(super) struct LeaseEnd {
    /// Nanoseconds on the clock's time line.
    nanos: Arc<AtomicU64>,
}

impl LeaseEnd {
    /// One that has ended.
    pub(super) fn ended() -> Self {
        Self { nanos: Arc::new(AtomicU64::new(ENDED)) }
    }

    /// Moves the end to `until`; [`Moment::NEVER`] for a link without a lease.
    pub(super) fn extend_to(&self, until: Moment) {
        let nanos = match until {
            Moment::NEVER => NEVER,
            // Coarse readings lag behind, so that a lease would seem to last longer by that.
            until => (until - COARSE_LAG).as_nanos(),
        };
        self.nanos.store(nanos, Ordering::SeqCst);
    }

    /// Takes the end of another.
    pub(super) fn continue_from(&self, other: &Self) {
        self.nanos.store(other.nanos.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Ends the lease now.
    pub(super) fn end(&self) {
        self.nanos.store(ENDED, Ordering::SeqCst);
    }

    /// True once the lease has ended. One atomic load and, where there is a lease, one coarse
    /// reading of the clock: a process that wakes from a pause finds it ended before any task of
    /// its own has run.
    #[inline]
    pub(super) fn has_passed(&self, clock: &Clock) -> bool {
        match self.nanos.load(Ordering::SeqCst) {
            NEVER => false,
            end => clock.coarse_now().as_nanos() >= end,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_lease_ends_by_the_clock_alone_and_early_by_the_lag() {
        let (clock, time) = Clock::manual();
        let end = LeaseEnd::ended();
        assert!(end.has_passed(&clock));
        end.extend_to(clock.now() + Duration::from_secs(3));
        time.advance(Duration::from_secs(3) - COARSE_LAG - Duration::from_millis(1));
        assert!(!end.has_passed(&clock));
        time.advance(Duration::from_millis(1));
        assert!(end.has_passed(&clock));
        end.extend_to(Moment::NEVER);
        time.advance(Duration::from_secs(1 << 40));
        assert!(!end.has_passed(&clock));
        end.end();
        assert!(end.has_passed(&clock));
    }
}
