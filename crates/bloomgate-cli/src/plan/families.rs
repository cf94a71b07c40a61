//! The planned size of each kind of set.

use bloomgate_filter::{Bitmap, BloomParams, ClassicParams, Error, ExactSet, FalsePositiveRate};
use serde::Serialize;

/// The length of the keys that an exact set is planned for: integers.
const KEY_LEN: usize = 8;

/// The widest addresses of today's processors have 57 bits.
const MAX_BYTES: u128 = 1 << 57;

/// One outcome for each kind of set.
#[derive(Debug, Serialize)]
pub(super) struct Families {
    pub(super) classic: Outcome,
    pub(super) bloom: Outcome,
    pub(super) bitmap: Outcome,
    pub(super) exact: Outcome,
}

/// The plan of one kind of set, or why there is none.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Outcome {
    Planned(Sizing),
    Refused { error: String },
}

/// The size of one kind of set.
#[derive(Debug, Serialize)]
pub(super) struct Sizing {
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
    pub(super) fn new(items: u64, rate: FalsePositiveRate) -> Self {
        Self {
            classic: ClassicParams::new(items, rate).map(|plan| classic(&plan)).into(),
            bloom: BloomParams::new(items, rate).map(|plan| bloom(&plan)).into(),
            bitmap: without_false_positives(items, Bitmap::planned_bytes(items)),
            exact: without_false_positives(items, ExactSet::planned_bytes(items, KEY_LEN)),
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

    /// The reasons of all kinds, if none could be planned.
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
    /// The size, if the set could be planned.
    pub(super) fn sizing(&self) -> Option<&Sizing> {
        match self {
            Self::Planned(sizing) => Some(sizing),
            Self::Refused { .. } => None,
        }
    }
}

impl From<Result<Sizing, Error>> for Outcome {
    fn from(result: Result<Sizing, Error>) -> Self {
        match result {
            Ok(sizing) => Self::Planned(sizing),
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

fn classic(plan: &ClassicParams) -> Sizing {
    Sizing {
        bits: plan.bits(),
        hashes: plan.hashes(),
        bytes: plan.bytes(),
        bits_per_item: plan.bits_per_item(),
        rates: Rates::new(plan.items(), |items| plan.expected_rate(items)),
    }
}

fn bloom(plan: &BloomParams) -> Sizing {
    Sizing {
        bits: plan.bits(),
        hashes: plan.hashes(),
        bytes: plan.bytes(),
        bits_per_item: plan.bits_per_item(),
        rates: Rates::new(plan.items(), |items| plan.expected_rate(items)),
    }
}

/// The size of a set without false positives, unless no process can hold it.
fn without_false_positives(items: u64, bytes: u128) -> Outcome {
    if bytes > MAX_BYTES {
        return Outcome::Refused {
            error: format!(
                "items is {items}: such a set needs {bytes} bytes, more than a process can \
                 address; give fewer items"
            ),
        };
    }
    let bits = bytes as u64 * 8;
    Outcome::Planned(Sizing {
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
        Families::new(items, FalsePositiveRate::new(rate).unwrap())
    }

    #[test]
    fn exact_kinds_have_the_size_of_their_sets_and_no_false_positives() {
        for items in [0, 1, 7_168, 65_537, 1_000_000, 1 << 40] {
            let families = families(items, 0.01);
            for (outcome, bytes) in [
                (&families.bitmap, Bitmap::planned_bytes(items)),
                (&families.exact, ExactSet::planned_bytes(items, 8)),
            ] {
                let sizing = outcome.sizing().unwrap();
                assert_eq!(u128::from(sizing.bytes), bytes);
                assert_eq!((sizing.bits, sizing.hashes), (sizing.bytes * 8, 0));
                assert_eq!((sizing.rates.once, sizing.rates.thrice), (0.0, 0.0));
            }
        }
        assert!(families(1_000_000, 0.01).bitmap.sizing().unwrap().bits_per_item < 1.2);
    }

    #[test]
    fn one_kind_is_planned_even_if_others_can_not_be() {
        let wide = families(1 << 59, 0.01);
        assert!(wide.bitmap.sizing().is_some() && wide.all_refused().is_none());
        for outcome in [&wide.classic, &wide.bloom, &wide.exact] {
            let Outcome::Refused { error } = outcome else { panic!("{outcome:?}") };
            assert!(error.contains("items") && error.contains("fewer items"), "{error}");
        }
        assert_eq!(families(u64::MAX, 0.01).all_refused().unwrap().len(), 4);
    }

    #[test]
    fn case_01_zero_items_have_finite_sizes() {
        for (name, outcome) in families(0, 0.01).named() {
            let sizing = outcome.sizing().unwrap();
            assert!(sizing.bits_per_item.is_finite(), "{name}");
            assert_eq!(sizing.rates.thrice, 0.0, "{name}");
        }
    }
}
