//! Counters that many threads add to at once.

use std::sync::atomic::{AtomicU64, Ordering};

/// Threads that insert at the same time mostly hit different stripes.
const STRIPES: usize = 8;

/// How many inserts were made and how many bits they newly set.
///
/// Striped by block so that two inserting threads seldom fight over one cache line. Everything is
/// relaxed: the counts order nothing, and are exact once the inserts they count happened before.
#[derive(Default)]
pub(crate) struct Tally([Stripe; STRIPES]);

/// Both counters of a stripe share a cache line, and nothing else does.
#[derive(Default)]
#[repr(align(64))]
struct Stripe {
    inserts: AtomicU64,
    set_bits: AtomicU64,
}

impl Tally {
    /// Counts one insert into block `block` that turned `set_bits` bits from 0 to 1.
    #[inline]
    pub(crate) fn add(&self, block: u64, set_bits: u32) {
        let stripe = &self.0[block as usize % STRIPES];
        stripe.inserts.fetch_add(1, Ordering::Relaxed);
        if set_bits > 0 {
            stripe.set_bits.fetch_add(u64::from(set_bits), Ordering::Relaxed);
        }
    }

    /// The number of inserts, then of bits set.
    pub(crate) fn totals(&self) -> (u64, u64) {
        self.0.iter().fold((0, 0), |(inserts, set_bits), stripe| {
            (
                inserts + stripe.inserts.load(Ordering::Relaxed),
                set_bits + stripe.set_bits.load(Ordering::Relaxed),
            )
        })
    }
}
