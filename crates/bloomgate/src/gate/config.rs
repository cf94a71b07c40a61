//! Which gate the user asked for.

use bloomgate_filter::{Hash, Plan, Rate};

use crate::error::Error;

/// How many ids the gate is sized for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capacity {
    /// Twice the rows that the source counts, and at least [`AT_LEAST`].
    Counted,
    /// This many.
    Fixed(u64),
}

/// The least that a counted gate is sized for.
pub(crate) const AT_LEAST: u64 = 10_000;

impl Capacity {
    pub(crate) fn for_rows(self, counted: u64) -> u64 {
        match self {
            Capacity::Counted => counted.saturating_mul(2).max(AT_LEAST),
            Capacity::Fixed(items) => items,
        }
    }
}

/// The gate to build: a blocked Bloom filter, or none.
///
/// ```
/// use bloomgate::Gate;
///
/// let gate = Gate::bloom().items(10_000_000).false_positive_rate(0.001);
/// ```
#[derive(Clone, Debug)]
pub struct Gate {
    capacity: Capacity,
    rate: f64,
    hash: Hash,
    forced_open: bool,
}

/// The same, checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GateSettings {
    pub(crate) capacity: Capacity,
    pub(crate) rate: Rate,
    pub(crate) hash: Hash,
    pub(crate) forced_open: bool,
}

impl Gate {
    /// A cache-line-blocked Bloom filter with a false-positive rate of 0.001, sized for twice the
    /// rows that the source counts (at least 10,000), hashed with AES-128-CMAC.
    #[must_use]
    pub fn bloom() -> Self {
        Self { capacity: Capacity::Counted, rate: 0.001, hash: Hash::Aes128, forced_open: false }
    }

    /// No gate: every request passes, and nothing is warmed. For tests and comparisons.
    #[must_use]
    pub fn open() -> Self {
        Self { forced_open: true, ..Self::bloom() }
    }

    /// Sizes the filter for this many ids. With more, no id is refused wrongly, but the
    /// false-positive rate rises above the one asked for.
    #[must_use]
    pub fn items(mut self, items: u64) -> Self {
        self.capacity = Capacity::Fixed(items);
        self
    }

    /// The share of absent ids that may pass when the gate holds as many ids as it is sized for;
    /// between 0 and 1, both excluded.
    #[must_use]
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// The keyed hash. [`Hash::SipHash13`] is the better choice on processors without AES
    /// instructions. [`Hash::Xxh3`] is the fastest and makes no claim against adversaries: for key
    /// spaces that strangers can't choose from.
    #[must_use]
    pub fn hash(mut self, hash: Hash) -> Self {
        self.hash = hash;
        self
    }

    pub(crate) fn check(&self) -> Result<GateSettings, Error> {
        let rate = Rate::new(self.rate).map_err(|e| Error::Filter(e.into()))?;
        if let Capacity::Fixed(items) = self.capacity {
            // A plan that can't be made is refused now, not when the table has been read.
            Plan::new(items, rate).map_err(|e| Error::Filter(e.into()))?;
        }
        Ok(GateSettings {
            capacity: self.capacity,
            rate,
            hash: self.hash,
            forced_open: self.forced_open,
        })
    }
}
