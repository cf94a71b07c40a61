//! A count that many threads add to, without a locked instruction for each addition.

use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(test)]
mod tests;

/// Threads that can count in a place of their own at the same time; the others share one place.
const PLACES: usize = 32;

/// How many inserts were made.
///
/// A thread owns one place in all tallies, from its first insert until it ends. Nobody else writes
/// there, so that a plain load and store suffice: a locked addition would cost as much as setting
/// one of the key's four words. Everything is relaxed: the count orders nothing, and is exact once
/// the inserts it counts happened before.
pub(crate) struct Tally {
    owned: Box<[Place; PLACES]>,
    shared: AtomicU64,
}

/// A cache line of its own, so that counting threads do not disturb one another.
#[derive(Default)]
#[repr(align(64))]
struct Place(AtomicU64);

impl Tally {
    /// A count that begins at `count`.
    pub(crate) fn starting_at(count: u64) -> Self {
        Self { owned: Box::default(), shared: AtomicU64::new(count) }
    }

    /// Counts `more` inserts.
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        // A thread that is being torn down has no place any more.
        match OWN.try_with(|own| own.0) {
            Ok(Some(at)) => {
                let place = &self.owned[at].0;
                place.store(place.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
            }
            Ok(None) | Err(_) => {
                self.shared.fetch_add(more, Ordering::Relaxed);
            }
        }
    }

    /// The number of inserts.
    pub(crate) fn total(&self) -> u64 {
        let owned = self.owned.iter().map(|place| place.0.load(Ordering::Relaxed));
        owned.fold(self.shared.load(Ordering::Relaxed), u64::wrapping_add)
    }
}

/// A bit for each place that a thread owns.
static TAKEN: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OWN: Own = Own::claim();
}

/// The place of a thread, or `None` if all were taken when it came.
struct Own(Option<usize>);

impl Own {
    fn claim() -> Self {
        // Acquire, with the release below: who takes over a place sees what the thread before it
        // has counted there.
        let claimed = TAKEN.fetch_update(Ordering::Acquire, Ordering::Relaxed, |taken| {
            let free = taken.trailing_ones() as usize;
            (free < PLACES).then(|| taken | 1 << free)
        });
        Self(claimed.ok().map(|before| before.trailing_ones() as usize))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(at) = self.0 {
            TAKEN.fetch_and(!(1 << at), Ordering::Release);
        }
    }
}
