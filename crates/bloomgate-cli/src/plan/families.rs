//! The figures of each kind of set.

use bloomgate_filter::{ClassicPlan, Error, Plan, Rate};
use serde::Serialize;

/// Ids that share a page of the bitmap.
const PAGE_IDS: u64 = 65_536;
/// Bytes of a page with its entry in the directory: a number and a pointer.
const PAGE_BYTES: u128 = PAGE_IDS as u128 / 8 + 16;

/// Bytes of a place in the table of an exact set: pointer and length of the key, a control byte.
const SLOT_BYTES: u128 = 17;
/// Bytes of the smallest allocation, which a key of 8 bytes takes.
const KEY_BYTES: u128 = 32;

/// The widest addresses of today's processors have 57 bits.
const MOST_BYTES: u128 = 1 << 57;

/// One outcome for each kind of set.
#[derive(Debug, Serialize)]
pub(super) struct Families {
    pub(super) classic: Outcome,
    pub(super) bloom: Outcome,
    pub(super) bitmap: Outcome,
    pub(super) exact: Outcome,
}

/// What came of planning one kind of set.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Outcome {
    Planned(Figures),
    Refused { error: String },
}

/// The figures of one kind of set.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    pub(super) bits: u64,
    pub(super) hashes: u32,
    pub(super) bytes: u64,
    pub(super) bits_per_item: f64,
    pub(super) rates: Rates,
}

/// False-positive rates with one, two and three times the planned items.
#[derive(Debug, Serialize)]
pub(super) struct Rates {
    #[serde(rename = "1x")]
    pub(super) once: f64,
    #[serde(rename = "2x")]
    pub(super) twice: f64,
    #[serde(rename = "3x")]
    pub(super) thrice: f64,
}

impl Families {
    pub(super) fn new(items: u64, rate: Rate) -> Self {
        Self {
            classic: ClassicPlan::new(items, rate).map(|plan| classic(&plan)).into(),
            bloom: Plan::new(items, rate).map(|plan| bloom(&plan)).into(),
            bitmap: bitmap(items),
            exact: exact(items),
        }
    }

    /// All with their names, in the order in which they are shown.
    pub(super) fn named(&self) -> [(&'static str, &Outcome); 4] {
        [
            ("classic", &self.classic),
            ("bloom", &self.bloom),
            ("bitmap", &self.bitmap),
            ("exact", &self.exact),
        ]
    }

    /// The reasons, if nothing could be planned.
    pub(super) fn all_refused(&self) -> Option<Vec<(&'static str, &str)>> {
        self.named()
            .into_iter()
            .map(|(name, outcome)| match outcome {
                Outcome::Planned(_) => None,
                Outcome::Refused { error } => Some((name, error.as_str())),
            })
            .collect()
    }
}

impl Outcome {
    /// The figures, if it could be planned.
    pub(super) fn figures(&self) -> Option<&Figures> {
        match self {
            Self::Planned(figures) => Some(figures),
            Self::Refused { .. } => None,
        }
    }
}

impl From<Result<Figures, Error>> for Outcome {
    fn from(result: Result<Figures, Error>) -> Self {
        match result {
            Ok(figures) => Self::Planned(figures),
            Err(error) => Self::Refused { error: error.to_string() },
        }
    }
}

impl Rates {
    const EXACT: Self = Self { once: 0.0, twice: 0.0, thrice: 0.0 };

    fn new(items: u64, rate_at: impl Fn(u64) -> f64) -> Self {
        let [once, twice, thrice] = [1, 2, 3].map(|times| rate_at(items.saturating_mul(times)));
        Self { once, twice, thrice }
    }
}

fn classic(plan: &ClassicPlan) -> Figures {
    Figures {
        bits: plan.bits(),
        hashes: plan.hashes(),
        bytes: plan.bytes(),
        bits_per_item: plan.bits_per_item(),
        rates: Rates::new(plan.items(), |items| plan.expected_rate(items)),
    }
}

fn bloom(plan: &Plan) -> Figures {
    Figures {
        bits: plan.bits(),
        hashes: plan.hashes(),
        bytes: plan.bytes(),
        bits_per_item: plan.bits_per_item(),
        rates: Rates::new(plan.items(), |items| plan.expected_rate(items)),
    }
}

/// Whole pages; ids that leave large gaps touch more of them than this counts.
fn bitmap(items: u64) -> Outcome {
    let pages = u128::from(items.div_ceil(PAGE_IDS));
    exact_figures(items, pages * u128::from(PAGE_IDS), pages * PAGE_BYTES)
}

/// A hash table of a power of two of places, at most seven eighths full, and the keys' memory.
fn exact(items: u64) -> Outcome {
    let items_wide = u128::from(items);
    let slots = match items {
        0 => 0,
        _ => (items_wide * 8).div_ceil(7).next_power_of_two(),
    };
    let bytes = slots * SLOT_BYTES + items_wide * KEY_BYTES;
    exact_figures(items, bytes * 8, bytes)
}

/// The figures of a set without false positives, unless no process can hold it.
fn exact_figures(items: u64, bits: u128, bytes: u128) -> Outcome {
    if bytes > MOST_BYTES {
        return Outcome::Refused {
            error: format!(
                "items is {items}: such a set needs {bytes} bytes, more than a process can \
                 address; give fewer items"
            ),
        };
    }
    let bits = bits as u64;
    Outcome::Planned(Figures {
        bits,
        hashes: 0,
        bytes: bytes as u64,
        bits_per_item: bits as f64 / items.max(1) as f64,
        rates: Rates::EXACT,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn families(items: u64, rate: f64) -> Families {
        Families::new(items, Rate::new(rate).unwrap())
    }

    #[test]
    fn a_bitmap_has_whole_pages() {
        for (items, pages) in [(0, 0), (1, 1), (65_536, 1), (65_537, 2), (1_000_000, 16)] {
            let outcome = bitmap(items);
            let figures = outcome.figures().unwrap();
            assert_eq!((figures.bits, figures.bytes), (pages * 65_536, pages * 8_208));
            assert_eq!((figures.hashes, figures.rates.thrice), (0, 0.0));
        }
        let most = ((MOST_BYTES / PAGE_BYTES) as u64) * PAGE_IDS;
        assert_eq!(bitmap(most).figures().unwrap().bits, most);
        assert!(bitmap(most + 1).figures().is_none());
    }

    #[test]
    fn an_exact_set_takes_fifty_to_seventy_bytes_a_key() {
        for items in [1_000, 7_168, 7_169, 1_000_000, 1 << 40] {
            let outcome = exact(items);
            let figures = outcome.figures().unwrap();
            let each = figures.bytes as f64 / items as f64;
            assert!((51.0..72.0).contains(&each), "{items}: {each}");
            assert_eq!(figures.bits, figures.bytes * 8);
        }
    }

    #[test]
    fn families_that_can_be_planned_are_planned_though_others_can_not() {
        let wide = families(1 << 59, 0.01);
        assert!(wide.bitmap.figures().is_some() && wide.all_refused().is_none());
        for outcome in [&wide.classic, &wide.bloom, &wide.exact] {
            let Outcome::Refused { error } = outcome else { panic!("{outcome:?}") };
            assert!(error.contains("items") && error.contains("fewer items"), "{error}");
        }
        assert_eq!(families(u64::MAX, 0.01).all_refused().unwrap().len(), 4);
    }

    #[test]
    fn c01_no_items_have_finite_figures() {
        for (name, outcome) in families(0, 0.01).named() {
            let figures = outcome.figures().unwrap();
            assert!(figures.bits_per_item.is_finite(), "{name}");
            assert_eq!(figures.rates.thrice, 0.0, "{name}");
        }
    }
}
