//! A striped counter: additions by many threads without a locked instruction.

use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(test)]
mod tests;

/// Threads that can own a stripe at the same time; further threads share one counter.
const STRIPES: usize = 32;

/// A 64-bit counter that many threads add to.
///
/// A thread owns the stripe of one index in all counters, from its first addition until it ends. No
/// other thread writes to that stripe, so a plain load and store suffice: a locked addition would
/// cost as much as setting one of the key's four words. All orderings are relaxed: the count orders
/// nothing, and [`total`](StripedCounter::total) is exact for additions that happened before it.
pub(crate) struct StripedCounter {
    owned: Box<[Stripe; STRIPES]>,
    shared: AtomicU64,
}

/// The part of a counter that one thread writes to; a cache line of its own avoids false sharing.
#[derive(Default)]
#[repr(align(64))]
struct Stripe(AtomicU64);

impl StripedCounter {
    /// A counter with the initial value `count`.
    pub(crate) fn starting_at(count: u64) -> Self {
        Self { owned: Box::default(), shared: AtomicU64::new(count) }
    }

    /// Adds `more`.
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        // `Err`: the thread's local storage is already destroyed.
        match THREAD_STRIPE.try_with(|stripe| stripe.0) {
            Ok(Some(at)) => {
                let stripe = &self.owned[at].0;
                stripe.store(stripe.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
            }
            Ok(None) | Err(_) => {
                self.shared.fetch_add(more, Ordering::Relaxed);
            }
        }
    }

    /// The sum of all additions and the initial value.
    pub(crate) fn total(&self) -> u64 {
        let owned = self.owned.iter().map(|stripe| stripe.0.load(Ordering::Relaxed));
        owned.fold(self.shared.load(Ordering::Relaxed), u64::wrapping_add)
    }
}

/// One bit for each stripe index that a thread owns.
static STRIPES_IN_USE: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static THREAD_STRIPE: ThreadStripe = ThreadStripe::claim();
}

/// The stripe index that a thread owns, or `None` if all were in use.
struct ThreadStripe(Option<usize>);

impl ThreadStripe {
    fn claim() -> Self {
        // Acquire, paired with the release below: the new owner of a stripe sees the additions of
        // the previous one.
        let claimed = STRIPES_IN_USE.fetch_update(Ordering::Acquire, Ordering::Relaxed, |in_use| {
            let free = in_use.trailing_ones() as usize;
            (free < STRIPES).then(|| in_use | 1 << free)
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
