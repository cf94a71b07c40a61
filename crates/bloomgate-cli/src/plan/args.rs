//! The flags of `bloomgate plan`.

use bloomgate_filter::FalsePositiveRate;

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
hold so many items.";

/// Work out how large each kind of set would be, and how it fares when overfull.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// Distinct items to plan for: a whole number below 2^64, also as 1_000_000 or 1e6
    #[arg(long, value_name = "N", value_parser = items, allow_negative_numbers = true)]
    pub(crate) items: u64,

    /// Share of absent keys that may pass: above 0 and below 1, at least 1e-9
    #[arg(long, value_name = "P", value_parser = rate, allow_negative_numbers = true)]
    pub(crate) rate: FalsePositiveRate,

    /// Print one JSON object on stdout instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads `1000000`, `1_000_000`, `1e6` or `2.5e9`, exactly: no step of it is a float.
fn items(text: &str) -> Result<u64, String> {
    whole_number(&text.replace('_', "")).ok_or_else(|| {
        "give a whole number from 0 to 18446744073709551615, such as 1000000 or 1e6".to_owned()
    })
}

fn whole_number(text: &str) -> Option<u64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<u8>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (mantissa, ""),
    };
    // The parser would take a sign.
    if !whole.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    // The exponent must move every digit behind the point before it.
    let zeros = usize::from(exponent).checked_sub(fraction.len())?;
    let digits = format!("{whole}{fraction}").parse::<u64>().ok()?;
    digits.checked_mul(10_u64.checked_pow(zeros as u32)?)
}

fn rate(text: &str) -> Result<FalsePositiveRate, String> {
    let value = text.parse::<f64>().map_err(
        |_| "give a number between 0 and 1, both excluded, such as 0.001 for one in a thousand",
    )?;
    FalsePositiveRate::new(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_exactly() {
        for (text, number) in [
            ("0", 0),
            ("1000", 1_000),
            ("1_000_000", 1_000_000),
            ("1e6", 1_000_000),
            ("1E0", 1),
            ("2.5e9", 2_500_000_000),
            ("1_0.2_5e3", 10_250),
            ("1e+06", 1_000_000),
            ("0e19", 0),
            ("1e19", 10_000_000_000_000_000_000),
            ("18446744073709551615", u64::MAX),
            ("1.8446744073709551615e19", u64::MAX),
        ] {
            assert_eq!(items(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn what_is_no_whole_number_is_refused_with_an_example() {
        for text in [
            "",
            "-5",
            "-0",
            "+5",
            "_",
            "1.5",
            "1.",
            ".5e3",
            "1.5e0",
            "1e",
            "e6",
            "1e-3",
            "1e20",
            "2e19",
            "1e300",
            "18446744073709551616",
            "abc",
            "NaN",
            "inf",
            "1,000",
            "0x10",
            "1 000",
            "1e6e6",
            "1.2.3e5",
            "1.-5e3",
            "٣",
        ] {
            let error = items(text).unwrap_err();
            assert!(error.contains("1000000"), "{text:?}: {error}");
        }
    }

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
