//! Tests of the Bloom filter sizes.

use proptest::prelude::*;

use super::*;

fn params(items: u64, rate: f64) -> BloomParams {
    BloomParams::new(items, FalsePositiveRate::new(rate).unwrap()).unwrap()
}

#[test]
fn case_02_rates_outside_0_to_1_are_refused() {
    let above = 1.0 + f64::EPSILON;
    for value in [0.0, -0.0, 1.0, above, 1.5, 5.0, 50.0, -1.0, -1e-300, f64::INFINITY] {
        for value in [value, -value] {
            if value > 0.0 && value < 1.0 {
                continue;
            }
            let error = FalsePositiveRate::new(value).unwrap_err();
            assert_eq!(error, Error::RateOutOfRange { value });
            assert!(error.to_string().contains("false_positive_rate"));
        }
    }
    assert!(matches!(FalsePositiveRate::new(f64::NAN), Err(Error::RateOutOfRange { .. })));
}

#[test]
fn case_02_rates_below_the_minimum_are_refused() {
    for value in [5e-324, f64::MIN_POSITIVE, 1e-12, 0.999e-9] {
        let error = FalsePositiveRate::new(value).unwrap_err();
        assert_eq!(error, Error::RateTooSmall { value });
        assert!(error.to_string().contains("false_positive_rate"));
    }
    assert_eq!(FalsePositiveRate::new(1e-9).unwrap().get(), 1e-9);
}

#[test]
fn case_02_rate_close_to_1_gives_a_small_filter() {
    // The largest number below 1.
    for items in [0, 1, 1_000, 1_000_000_000] {
        let params = params(items, 1.0 - f64::EPSILON / 2.0);
        assert!(params.blocks() >= 1 && params.bits() <= 512 + items, "{params:?}");
    }
}

#[test]
fn case_01_zero_items_give_one_block() {
    for rate in [1e-9, 0.01, 0.999] {
        let params = params(0, rate);
        assert_eq!((params.blocks(), params.bits(), params.bytes()), (1, 512, 64));
        assert_eq!(params.bits_per_item(), 512.0);
        assert_eq!(params.expected_rate(0), 0.0);
        assert!(params.expected_rate(1) < 1e-12);
    }
}

/// Computed independently, in Python, with logarithms of the gamma function.
#[test]
fn bloom_sizes_agree_with_an_independent_calculation() {
    for (items, rate, blocks) in [
        (1, 1e-9, 1),
        (100, 0.5, 1),
        (100, 0.1, 2),
        (100, 0.001, 4),
        (100, 1e-6, 10),
        (100, 1e-9, 36),
        (10_000, 0.5, 64),
        (10_000, 0.01, 198),
        (10_000, 0.001, 308),
        (10_000, 1e-9, 3_659),
        (100_000, 0.01, 1_973),
        (100_000, 0.001, 3_073),
        (100_000, 1e-6, 10_142),
        (100_000, 1e-9, 36_597),
    ] {
        assert_eq!(params(items, rate).blocks(), blocks, "{items} at {rate}");
    }
    assert!((params(1, 0.5).expected_rate(1) - 4.0180566393630684e-15).abs() < 1e-23);
    assert!((params(10_000, 0.01).expected_rate(10_000) - 0.009819034911480978).abs() < 1e-12);
    assert!((params(10_000, 1e-9).expected_rate(10_000) - 9.999908538795871e-10).abs() < 1e-17);
}

#[test]
fn overhead_over_the_classic_formula_is_within_the_target() {
    for (rate, limit) in [(0.01, 1.06), (0.001, 1.10)] {
        for items in [100_000, 10_000_000, 1_000_000_000] {
            let classic = -f64::ln(rate) / std::f64::consts::LN_2.powi(2);
            let ratio = params(items, rate).bits_per_item() / classic;
            assert!(ratio < limit, "{items} at {rate}: {ratio}");
        }
    }
}

#[test]
fn oversized_filter_is_refused_with_the_bytes_it_needs() {
    for (items, rate) in [(u64::MAX, 0.01), (u64::MAX, 1e-9), (1 << 63, 0.001)] {
        let error = BloomParams::new(items, FalsePositiveRate::new(rate).unwrap()).unwrap_err();
        let Error::TooLarge { bytes, .. } = error else { panic!("{error}") };
        assert!(bytes > isize::MAX as u128 && error.to_string().contains(&bytes.to_string()));
    }
}

#[test]
fn case_04_items_that_exceed_the_hash_width_are_refused() {
    let refused = |items, rate| {
        matches!(
            BloomParams::new(items, FalsePositiveRate::new(rate).unwrap()),
            Err(Error::HashTooNarrow { .. })
        )
    };
    assert!(refused(2_000_000_000, 1e-9));
    assert!(!refused(1_000_000_000, 1e-9));
    assert!(!refused(1_000_000_000_000, 1e-6));
}

#[test]
fn expected_rate_grows_monotonically_from_0_to_1() {
    let params = params(1_000, 0.01);
    let mut before = 0.0;
    for items in (0..20_000).step_by(100).chain([1 << 20, 1 << 40, u64::MAX]) {
        let rate = params.expected_rate(items);
        assert!((before..=1.0).contains(&rate), "{items}: {rate} after {before}");
        before = rate;
    }
    assert_eq!(before, 1.0);
}

#[test]
fn case_06_item_estimate_inverts_the_expected_fill() {
    for params in [params(0, 0.01), params(1_000, 0.01), params(1_000_000, 0.001)] {
        for items in [0, 1, params.items() / 2, params.items(), 3 * params.items()] {
            assert_eq!(params.estimated_items(params.expected_fill(items)), Some(items));
        }
        assert_eq!(params.estimated_items(1.0), None);
        assert!(params.estimated_items(1.0 - 1.0 / params.bits() as f64).is_some());
        assert_eq!(params.estimated_items(-0.0), Some(0));
    }
}

proptest! {
    #[test]
    fn case_02_valid_bloom_params_use_the_fewest_sufficient_blocks(
        exponent in 0_u32..64,
        mantissa: u64,
        rate in prop_oneof![1e-9..1.0, (-9.0..0.0).prop_map(|power: f64| 10_f64.powf(power))],
    ) {
        prop_assume!((1e-9..1.0).contains(&rate));
        let items = mantissa >> exponent;
        match BloomParams::new(items, FalsePositiveRate::new(rate).unwrap()) {
            Ok(params) => {
                prop_assert!(params.blocks() >= 1);
                prop_assert_eq!(params.bytes(), params.blocks() * 64);
                prop_assert!(params.expected_rate(items) <= rate);
                if params.blocks() > 1 {
                    prop_assert!(model_rate(items, params.blocks() - 1) > rate);
                }
            }
            Err(Error::TooLarge { .. } | Error::HashTooNarrow { .. }) => {}
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
    }
}
