//! A count that many threads add to, without a locked instruction for each addition.

use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(test)]
mod tests;

/// Threads that can count in a stripe of their own at the same time; the others share one stripe.
const STRIPES: usize = 32;

/// How many inserts were made.
///
/// A thread owns one stripe in all counters, from its first insert until it ends. Nobody else writes
/// there, so that a plain load and store suffice: a locked addition would cost as much as setting
/// one of the key's four words. Everything is relaxed: the count orders nothing, and is exact once
/// the inserts it counts happened before.
pub(crate) struct StripedCounter {
    owned: Box<[Stripe; STRIPES]>,
    shared: AtomicU64,
}

/// A cache line of its own, so that counting threads do not disturb one another.
#[derive(Default)]
#[repr(align(64))]
struct Stripe(AtomicU64);

impl StripedCounter {
    /// A count that begins at `count`.
    pub(crate) fn starting_at(count: u64) -> Self {
        Self { owned: Box::default(), shared: AtomicU64::new(count) }
    }

    /// Counts `more` inserts.
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        // A thread that is being torn down has no stripe any more.
        match THREAD_STRIPE.try_with(|own| own.0) {
            Ok(Some(at)) => {
                let stripe = &self.owned[at].0;
                stripe.store(stripe.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
            }
            Ok(None) | Err(_) => {
                self.shared.fetch_add(more, Ordering::Relaxed);
            }
        }
    }

    /// The number of inserts.
    pub(crate) fn total(&self) -> u64 {
        let owned = self.owned.iter().map(|stripe| stripe.0.load(Ordering::Relaxed));
        owned.fold(self.shared.load(Ordering::Relaxed), u64::wrapping_add)
    }
}

/// A bit for each stripe that a thread owns.
static STRIPES_IN_USE: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static THREAD_STRIPE: ThreadStripe = ThreadStripe::claim();
}

/// The stripe of a thread, or `None` if all were taken when it came.
struct ThreadStripe(Option<usize>);

impl ThreadStripe {
    fn claim() -> Self {
        // Acquire, with the release below: who takes over a stripe sees what the thread before it
        // has counted there.
        let claimed = STRIPES_IN_USE.fetch_update(Ordering::Acquire, Ordering::Relaxed, |taken| {
            let free = taken.trailing_ones() as usize;
            (free < STRIPES).then(|| taken | 1 << free)
        });
        Self(claimed.ok().map(|before| before.trailing_ones() as usize))
    }
}

impl Drop for ThreadStripe {
    fn drop(&mut self) {
        if let Some(at) = self.0 {
            STRIPES_IN_USE.fetch_and(!(1 << at), Ordering::Release);
        }
    }
}
