//! Advice on which kind of set to use.

use bloomgate_filter::{BloomParams, FalsePositiveRate};
use indicatif::BinaryBytes;

use super::families::Families;

/// Below this number of keys an exact set is small enough for every service.
const FEW_KEYS: u64 = 10_000;
/// A rate that is low enough unless false positives are very expensive.
const USUAL_RATE: f64 = 0.001;
/// A filter that is larger by at least this factor gets a sentence.
const NOTABLE: f64 = 1.25;

/// Sentences, the most useful first.
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

/// The blocked filter needs far more memory than the classic one for a tiny rate.
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
    fn an_exact_set_is_advised_for_few_keys() {
        assert!(advice_for(9_999, 0.01).contains("use exact"));
        assert!(!advice_for(10_000, 0.01).contains("use exact"));
    }

    #[test]
    fn a_bitmap_is_advised_for_dense_integers_with_its_size() {
        assert!(advice_for(1_000_000, 0.01).contains("9.6 times smaller than bloom"));
        // A bitmap of this few ids is larger than the filter.
        let few = advice_for(1_000, 0.01);
        assert!(few.contains("use bitmap") && few.contains("takes 2.12 KiB"), "{few}");
        // The filters can't be planned.
        assert!(advice_for(1 << 59, 0.01).contains("use bitmap"));
    }

    #[test]
    fn the_cost_of_a_tiny_rate_is_named() {
        let tiny = advice_for(1_000_000, 1e-6);
        assert!(tiny.contains("1.8 times the size of classic"), "{tiny}");
        for (items, rate) in [(1_000_000, 0.001), (1_000_000, 0.1), (1, 1e-9)] {
            assert!(!advice_for(items, rate).contains("classic"), "{items} {rate}");
        }
    }

    #[test]
    fn zero_items_give_the_advice_to_set_items() {
        assert!(advice_for(0, 0.01).contains("give --items"));
    }
}
