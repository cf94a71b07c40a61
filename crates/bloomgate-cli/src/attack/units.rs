//! The text forms of times and rates.

use indicatif::HumanCount;

/// Microseconds with a unit that keeps the number short.
pub(super) fn time(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.2} ms", micros as f64 / 1e3),
        _ => format!("{:.2} s", micros as f64 / 1e6),
    }
}

/// Requests per second, with a fraction only below 10.
pub(super) fn per_second(rate: f64) -> String {
    match rate {
        ..9.95 => format!("{rate:.1}/s"),
        _ => format!("{}/s", HumanCount(rate.round() as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time(999), "999 µs");
        assert_eq!(time(1_000), "1.00 ms");
        assert_eq!(time(2_500_000), "2.50 s");
    }

    #[test]
    fn rates_have_a_fraction_only_when_they_are_low() {
        for (rate, text) in [
            (27_659.321_2, "27,659/s"),
            (10.4, "10/s"),
            (9.96, "10/s"),
            (0.25, "0.2/s"),
            (0.0, "0.0/s"),
            (f64::NAN, "0/s"),
        ] {
            assert_eq!(per_second(rate), text);
        }
    }
}
