//! The number syntax of all flags: `1000000`, `1_000_000` or `1e6`.

use std::ops::RangeInclusive;

/// A parser of whole numbers in `range`, for clap. It reads exactly: no step of it is a float.
pub(crate) fn whole<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: Copy + Into<u64> + TryFrom<u64> + Send + Sync + 'static,
{
    let (first, last): (u64, u64) = ((*range.start()).into(), (*range.end()).into());
    move |text| {
        let number = parse_whole(text).filter(|number| (first..=last).contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| refusal(text, first, last))
    }
}

/// Reads a number that may have a fraction; `None` if it is none.
pub(crate) fn decimal(text: &str) -> Option<f64> {
    if text.starts_with('+') {
        return None;
    }
    text.replace('_', "").parse().ok()
}

fn refusal(text: &str, first: u64, last: u64) -> String {
    let example = match last {
        1_000_000.. => ", such as 1000000, 1_000_000 or 1e6",
        1_000.. => ", such as 1000 or 1e3",
        _ => "",
    };
    let problem = match decimal(text) {
        Some(number) if number.is_finite() && number.fract() != 0.0 => {
            format!("{text} is not a whole number; ")
        }
        _ => String::new(),
    };
    format!("{problem}give a whole number from {first} to {last}{example}")
}

fn parse_whole(text: &str) -> Option<u64> {
    let text = text.replace('_', "");
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<u8>().ok()?),
        None => (text.as_str(), 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (mantissa, ""),
    };
    // `parse` accepts a sign.
    if !whole.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    // The exponent must move every digit behind the point before it.
    let zeros = usize::from(exponent).checked_sub(fraction.len())?;
    let digits = format!("{whole}{fraction}").parse::<u64>().ok()?;
    digits.checked_mul(10_u64.checked_pow(zeros as u32)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_exactly() {
        let parse = whole(0..=u64::MAX);
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
            assert_eq!(parse(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_range_and_example() {
        let parse = whole(0..=u64::MAX);
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
            let error = parse(text).unwrap_err();
            let advice = "give a whole number from 0 to 18446744073709551615, such as 1000000, 1_000_000 or 1e6";
            assert!(error.ends_with(advice), "{text:?}: {error}");
        }
    }

    #[test]
    fn fractions_are_named_as_the_problem() {
        for text in ["1.5", "1e-3", "2.55e1", "-0.5"] {
            let error = whole(1..=10_000_u32)(text).unwrap_err();
            let says = format!(
                "{text} is not a whole number; give a whole number from 1 to 10000, such as 1000 or 1e3"
            );
            assert_eq!(error, says);
        }
    }

    #[test]
    fn whole_numbers_outside_the_range_are_refused() {
        let parse = whole(1..=256_u16);
        assert_eq!((parse("1"), parse("2.56e2")), (Ok(1), Ok(256)));
        for text in ["0", "257", "65537", "1e19"] {
            assert_eq!(parse(text), Err("give a whole number from 1 to 256".to_owned()), "{text}");
        }
    }

    #[test]
    fn decimals_share_the_underscore_and_the_exponent() {
        for (text, number) in [("0.5", 0.5), ("1e-3", 1e-3), ("1_000.5", 1000.5), ("-1", -1.0)] {
            assert_eq!(decimal(text), Some(number), "{text}");
        }
        for text in ["", "+1", "1%", "0,1", "1/2", "one"] {
            assert_eq!(decimal(text), None, "{text}");
        }
    }
}
