//! Tests of the classic filter sizes.

use proptest::prelude::*;

use super::*;

fn params(items: u64, rate: f64) -> ClassicParams {
    ClassicParams::new(items, FalsePositiveRate::new(rate).unwrap()).unwrap()
}

/// The formula evaluated independently, to fifty digits.
#[test]
fn sizes_agree_with_the_textbook_formula() {
    for (items, rate, bits, hashes) in [
        (1_000_000, 0.01, 9_585_059, 7),
        (10_000_000, 0.001, 143_775_876, 10),
        (100_000_000, 0.01, 958_505_838, 7),
        (100_000_000, 0.001, 1_437_758_757, 10),
        (1_000_000_000, 0.0001, 19_170_116_755, 13),
        (1, 1e-9, 44, 30),
        (1, 0.5, 2, 1),
        (3, 0.9, 1, 1),
    ] {
        let params = params(items, rate);
        assert_eq!((params.bits(), params.hashes()), (bits, hashes), "{items} at {rate}");
        assert_eq!(params.bytes(), bits.div_ceil(64) * 8);
        assert_eq!((params.items(), params.false_positive_rate().get()), (items, rate));
        assert_eq!(params.bits_per_item(), bits as f64 / items as f64);
    }
}

#[test]
fn expected_rate_agrees_with_the_textbook_formula() {
    let million = params(1_000_000, 0.01);
    assert!((million.expected_rate(1_000_000) - 0.010_039_214_559).abs() < 1e-12);
    let large = params(100_000_000, 0.001);
    assert!((large.expected_rate(100_000_000) - 0.001_000_024_925).abs() < 1e-12);
    let seven =
        ClassicParams::stored(large.items(), large.false_positive_rate(), large.bits(), 7).unwrap();
    assert!((seven.expected_rate(100_000_000) - 0.001_264_140_185).abs() < 1e-12);
}

#[test]
fn case_01_zero_items_give_one_word() {
    for (rate, hashes) in [(1e-9, 30), (0.01, 7), (0.999, 1)] {
        let params = params(0, rate);
        assert_eq!((params.bits(), params.bytes(), params.hashes()), (64, 8, hashes));
        assert_eq!((params.bits_per_item(), params.expected_rate(0)), (64.0, 0.0));
        assert!(params.expected_rate(1) < 0.02);
    }
}

#[test]
fn case_02_rate_close_to_1_gives_a_small_filter() {
    for items in [0, 1, 1_000, 1_000_000_000] {
        let params = params(items, 1.0 - f64::EPSILON / 2.0);
        assert_eq!((params.bytes(), params.hashes()), (8, 1));
        assert!((0.0..=1.0).contains(&params.expected_rate(items)));
    }
}

#[test]
fn oversized_filter_is_refused_with_the_bytes_it_needs() {
    for (items, rate) in [(u64::MAX, 0.01), (u64::MAX, 1e-9), (1 << 63, 0.001)] {
        let error = ClassicParams::new(items, FalsePositiveRate::new(rate).unwrap()).unwrap_err();
        let Error::TooLarge { bytes, .. } = error else { panic!("{error}") };
        let needed = items as f64 * -rate.ln() / LN_2.powi(2) / 8.0;
        assert!((bytes as f64 / needed - 1.0).abs() < 1e-9 && bytes > isize::MAX as u128);
    }
}

#[test]
fn case_04_items_that_exceed_the_hash_width_are_refused() {
    let refused = |items, rate| {
        let params = ClassicParams::new(items, FalsePositiveRate::new(rate).unwrap());
        matches!(params, Err(Error::HashTooNarrow { .. }))
    };
    assert!(refused(2_000_000_000, 1e-9));
    assert!(!refused(1_000_000_000, 1e-9));
    assert!(!refused(1_000_000_000_000, 1e-6));
    // Close to the maximum number of bits.
    let largest = params((HASHES * 0.036) as u64, 0.367_879_441);
    assert!(largest.bits() < 1 << 61 && largest.bits() > 1 << 60);
}

#[test]
fn case_06_expected_rate_grows_monotonically_from_0_to_1() {
    for params in [params(0, 0.01), params(1_000, 0.01), params(1_000_000_000, 1e-9)] {
        let mut before = 0.0;
        let steps = (0..20).map(|step| params.items() / 4 * step);
        for items in steps.chain([1 << 40, 1 << 50, u64::MAX]) {
            let rate = params.expected_rate(items);
            assert!((before..=1.0).contains(&rate), "{items}: {rate} after {before}");
            before = rate;
        }
        assert_eq!((params.expected_rate(0), before), (0.0, 1.0));
        assert!(params.expected_fill(0).is_sign_positive());
    }
}

#[test]
fn case_06_item_estimate_inverts_the_expected_fill() {
    for params in
        [params(0, 0.01), params(1_000, 0.01), params(1_000_000, 0.001), params(1 << 40, 1e-6)]
    {
        for items in [0, 1, params.items() / 2, params.items(), 3 * params.items()] {
            let estimate = params.estimated_items(params.expected_fill(items)).unwrap();
            assert!(estimate.abs_diff(items) <= items >> 45, "{estimate} for {items}");
        }
        assert_eq!(params.estimated_items(-0.0), Some(0));
        assert!(params.estimated_items(1.0 - f64::EPSILON).is_some());
        for full in [1.0, 1.5, f64::INFINITY, f64::NAN] {
            assert_eq!(params.estimated_items(full), None);
        }
    }
}

#[test]
fn case_10_invalid_stored_params_are_refused() {
    let stored = |bits, hashes| {
        ClassicParams::stored(5, FalsePositiveRate::new(0.01).unwrap(), bits, hashes)
    };
    for (bits, hashes) in [(0, 0), (0, 1), (1, 0), (1, 2), (100, 65), (100, u32::MAX)] {
        assert_eq!(stored(bits, hashes), None, "{bits} {hashes}");
    }
    for (bits, hashes) in [(1, 1), (2, 2), (100, 64), (64, 64)] {
        let params = stored(bits, hashes).unwrap();
        assert_eq!((params.bits(), params.hashes(), params.items()), (bits, hashes, 5));
    }
    let params = params(1_000, 0.001);
    let again = ClassicParams::stored(
        params.items(),
        params.false_positive_rate(),
        params.bits(),
        params.hashes(),
    );
    assert_eq!(again, Some(params));
}

proptest! {
    #[test]
    fn case_02_valid_classic_params_meet_the_rate_within_their_slack(
        exponent in 0_u32..64,
        mantissa: u64,
        rate in prop_oneof![1e-9..1.0, (-9.0..0.0).prop_map(|power: f64| 10_f64.powf(power))],
    ) {
        prop_assume!((1e-9..1.0).contains(&rate));
        let items = mantissa >> exponent;
        match ClassicParams::new(items, FalsePositiveRate::new(rate).unwrap()) {
            Ok(params) => {
                prop_assert!((1..=64).contains(&params.hashes()));
                prop_assert!(u64::from(params.hashes()) <= params.bits());
                prop_assert!(params.bytes() * 8 - params.bits() < 64);
                let slack = if rate <= 0.1 { 1.02 } else { 1.125 };
                prop_assert!(params.expected_rate(items) <= rate * slack, "{params:?}");
                prop_assert!(params.expected_fill(u64::MAX) <= 1.0);
            }
            Err(Error::TooLarge { .. } | Error::HashTooNarrow { .. }) => {}
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
    }
}
