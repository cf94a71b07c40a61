//! The report as text.

use std::fmt::{self, Display, Formatter};

use bloomgate_filter::Bitmap;
use indicatif::{BinaryBytes, HumanCount};

use super::Report;
use super::families::{Outcome, Sizing};

const HEAD: [&str; 8] =
    ["family", "bits", "hashes", "memory", "bits/item", "rate at 1x", "2x", "3x"];

/// Displays a report as a table, with a line break at the end.
#[derive(Debug)]
pub(super) struct Table<'a>(pub(super) &'a Report);

impl Display for Table<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Report { items, rate, families, advice } = self.0;
        let items = HumanCount(*items);
        writeln!(out, "{items} items at a false-positive rate of {rate:?}\n")?;

        let mut rows = vec![HEAD.map(str::to_owned)];
        for (name, outcome) in families.named() {
            rows.extend(outcome.sizing().map(|sizing| row(name, sizing)));
        }
        let widths: [usize; HEAD.len()] = std::array::from_fn(|column| {
            rows.iter().map(|row| row[column].len()).max().unwrap_or(0)
        });
        for row in &rows {
            write!(out, "{:<7}", row[0])?;
            for (cell, width) in row.iter().zip(widths).skip(1) {
                write!(out, "  {cell:>width$}")?;
            }
            writeln!(out)?;
        }
        for (name, outcome) in families.named() {
            if let Outcome::Refused { error } = outcome {
                writeln!(out, "{name:<7}  can't be planned: {error}")?;
            }
        }

        writeln!(out, "\nrates    with 1, 2 and 3 times the planned items in")?;
        if families.bitmap.sizing().is_some() {
            let million = BinaryBytes(Bitmap::planned_bytes(1_000_000) as u64);
            writeln!(out, "bitmap   of dense integer ids, a million of which take {million};")?;
            writeln!(
                out,
                "         of one id in 100 a million take 1.9 MiB, of one in 65,536 9.5 MiB"
            )?;
        }
        if families.exact.sizing().is_some() {
            writeln!(out, "exact    of keys of 8 bytes")?;
        }
        for sentence in advice {
            writeln!(out, "\nadvice: {sentence}")?;
        }
        Ok(())
    }
}

fn row(name: &str, sizing: &Sizing) -> [String; HEAD.len()] {
    [
        name.to_owned(),
        HumanCount(sizing.bits).to_string(),
        sizing.hashes.to_string(),
        BinaryBytes(sizing.bytes).to_string(),
        format!("{:.2}", sizing.bits_per_item),
        short(sizing.rates.once),
        short(sizing.rates.twice),
        short(sizing.rates.thrice),
    ]
}

/// A rate with three significant digits.
fn short(rate: f64) -> String {
    let scientific = format!("{rate:.2e}");
    // The exponent after rounding: 0.00999999 is shown as 0.0100.
    let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok());
    match exponent {
        _ if rate == 0.0 => "0".to_owned(),
        Some(exponent @ -4_i32..=0) => format!("{rate:.0$}", exponent.abs_diff(2) as usize),
        _ => scientific,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_significant_digits() {
        for (rate, text) in [
            (0.0, "0"),
            (1e-9, "1.00e-9"),
            (0.000_123_456, "0.000123"),
            (0.000_099_999, "0.000100"),
            (0.010_039, "0.0100"),
            (0.009_999_97, "0.0100"),
            (0.5, "0.500"),
            (1.0, "1.00"),
        ] {
            assert_eq!(short(rate), text);
        }
    }
}
