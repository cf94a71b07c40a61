//! The flags of `bloomgate plan`.

use bloomgate_filter::FalsePositiveRate;

use crate::number::{decimal, whole};

/// The example, the fields of the JSON report and the exit codes.
const AFTER: &str = "\
Example:
  bloomgate plan --items 1e6 --rate 0.01

Kinds of sets:
  classic   the textbook Bloom filter, to compare with: any keys, a cache line for every bit
  bloom     the Bloom filter of the guard: any keys, one cache line a lookup
  bitmap    integers, exact: the size is that of dense ids, such as those of a sequence
  exact     any keys, exact: the size is that of keys of 8 bytes

Fields of --json:
  items, rate           what was asked
  families              {classic, bloom, bitmap, exact}, each one object:
    bits                size of the filter; of the exact kinds 8 times the bytes
    hashes              bits that a key sets; 0 where keys are not hashed into bits
    bytes               memory
    bits_per_item       bits / items
    rates               {1x, 2x, 3x}: share of absent keys that pass once as many, twice or three
                        times as many distinct items are in as were planned
    error               in place of all these, why this kind can't be planned
  advice                sentences

Exit codes: 0 planned; 1 the report can't be printed; 2 a flag is wrong, or no kind of set can
hold that many items.";

/// Work out how large each kind of set is, and its false-positive rate when it is overfull.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// Distinct items to plan for, such as 1000000, 1_000_000 or 1e6
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX), allow_negative_numbers = true)]
    pub(crate) items: u64,

    /// Share of absent keys that may pass: above 0 and below 1, at least 1e-9
    #[arg(long, value_name = "P", value_parser = rate, allow_negative_numbers = true)]
    pub(crate) rate: FalsePositiveRate,

    /// Print one JSON object on stdout instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

fn rate(text: &str) -> Result<FalsePositiveRate, String> {
    let value = decimal(text).ok_or(
        "give a number between 0 and 1, both excluded, such as 0.001 for one in a thousand",
    )?;
    FalsePositiveRate::new(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_02_nonsensical_rates_are_refused_with_a_fix() {
        assert_eq!(rate("0.01").unwrap().get(), 0.01);
        assert_eq!(rate("1e-9").unwrap().get(), 1e-9);
        for text in ["0", "-0", "1", "5", "-1", "NaN", "inf", "-inf", "1e-300", "1e-400"] {
            let error = rate(text).unwrap_err();
            assert!(error.starts_with("false_positive_rate is"), "{text:?}: {error}");
            assert!(error.contains("give"), "{text:?}: {error}");
        }
        for text in ["", "abc", "1%", "0,01", "1/100"] {
            let error = rate(text).unwrap_err();
            assert!(error.contains("such as 0.001"), "{text:?}: {error}");
        }
    }
}
