//! What the sizes suggest.

use bloomgate_filter::{BloomParams, FalsePositiveRate};
use indicatif::BinaryBytes;

use super::families::Families;

/// Up to here an exact set is small enough not to think about.
const FEW_KEYS: u64 = 10_000;
/// A rate that serves well unless false positives are very dear.
const USUAL_RATE: f64 = 0.001;
/// From this factor on the size of a filter is worth a sentence.
const NOTABLE: f64 = 1.25;

/// Sentences, the most helpful first.
pub(super) fn advice(items: u64, rate: FalsePositiveRate, families: &Families) -> Vec<String> {
    if items == 0 {
        return vec![
            "0 items: give --items the number that is expected before the next rebuild.".to_owned(),
        ];
    }
    [few_keys(items, families), dense_integers(families), tiny_rate(items, rate, families)]
        .into_iter()
        .flatten()
        .collect()
}

fn few_keys(items: u64, families: &Families) -> Option<String> {
    let exact = families.exact.sizing().filter(|_| items < FEW_KEYS)?;
    let size = BinaryBytes(exact.bytes);
    Some(format!(
        "Fewer than 10,000 keys: use exact. It has no false positives and takes about {size}."
    ))
}

fn dense_integers(families: &Families) -> Option<String> {
    let bitmap = families.bitmap.sizing()?;
    let bloom = families.bloom.sizing();
    let factor = bloom.map_or(0.0, |bloom| bloom.bytes as f64 / bitmap.bytes as f64);
    let size = if factor >= NOTABLE {
        format!("is {factor:.1} times smaller than bloom")
    } else {
        format!("takes {}", BinaryBytes(bitmap.bytes))
    };
    Some(format!(
        "Dense integers, such as ids from a sequence: use bitmap. It has no false positives and \
         {size}."
    ))
}

/// The blocked filter pays for a tiny rate with far more memory than the classic one.
fn tiny_rate(items: u64, rate: FalsePositiveRate, families: &Families) -> Option<String> {
    if rate.get() >= USUAL_RATE {
        return None;
    }
    let (bloom, classic) = (families.bloom.sizing()?, families.classic.sizing()?);
    let usual = BloomParams::new(items, FalsePositiveRate::new(USUAL_RATE).ok()?).ok()?;
    let factor = bloom.bytes as f64 / classic.bytes as f64;
    if factor < NOTABLE || bloom.bytes as f64 / (usual.bytes() as f64) < NOTABLE {
        return None;
    }
    Some(format!(
        "At so small a rate bloom is {factor:.1} times the size of classic, for one cache line a \
         lookup. At {USUAL_RATE} it takes {} instead of {} and still refuses 999 of 1,000 absent \
         keys.",
        BinaryBytes(usual.bytes()),
        BinaryBytes(bloom.bytes),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice_for(items: u64, rate: f64) -> String {
        let rate = FalsePositiveRate::new(rate).unwrap();
        advice(items, rate, &Families::new(items, rate)).join("\n")
    }

    #[test]
    fn few_keys_want_an_exact_set() {
        assert!(advice_for(9_999, 0.01).contains("use exact"));
        assert!(!advice_for(10_000, 0.01).contains("use exact"));
    }

    #[test]
    fn dense_integers_want_a_bitmap_and_hear_how_much_smaller_it_is() {
        assert!(advice_for(1_000_000, 0.01).contains("9.6 times smaller than bloom"));
        // So few ids take more than the filter.
        let few = advice_for(1_000, 0.01);
        assert!(few.contains("use bitmap") && few.contains("takes 2.12 KiB"), "{few}");
        // The filters can't be planned.
        assert!(advice_for(1 << 59, 0.01).contains("use bitmap"));
    }

    #[test]
    fn a_tiny_rate_is_told_what_it_costs_and_a_usual_one_is_not() {
        let tiny = advice_for(1_000_000, 1e-6);
        assert!(tiny.contains("1.8 times the size of classic"), "{tiny}");
        for (items, rate) in [(1_000_000, 0.001), (1_000_000, 0.1), (1, 1e-9)] {
            assert!(!advice_for(items, rate).contains("classic"), "{items} {rate}");
        }
    }

    #[test]
    fn no_items_are_asked_for_a_number() {
        assert!(advice_for(0, 0.01).contains("give --items"));
    }
}
