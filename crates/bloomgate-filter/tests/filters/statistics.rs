//! Tests of the statistics of filling filters.

use crate::fixtures::{ALL_FILTERS, passing};

#[test]
fn case_06_overfull_filter_keeps_its_keys_and_reports_its_rate() {
    for build in ALL_FILTERS {
        let (filter, _) = build(5_000, 0.01);
        let mut before = filter.stats();
        assert_eq!(
            (before.items, before.fill_ratio, before.current_false_positive_rate),
            (0, 0.0, 0.0)
        );
        for n in 0..100_000_u64 {
            filter.insert(&n.to_le_bytes());
            if n % 5_000 == 4_999 {
                let now = filter.stats();
                assert!(now.fill_ratio >= before.fill_ratio && now.fill_ratio <= 1.0);
                assert!(now.current_false_positive_rate >= before.current_false_positive_rate);
                assert!(now.current_false_positive_rate <= 1.0);
                before = now;
            }
        }
        assert_eq!(passing(&*filter, (0..100_000).map(u64::to_le_bytes)), 100_000);
        assert_eq!((before.items, before.capacity), (100_000, Some(5_000)));
        let measured =
            passing(&*filter, (1 << 40..(1 << 40) + 20_000).map(u64::to_le_bytes)) as f64 / 2e4;
        assert!(measured > 0.9 && (before.current_false_positive_rate - measured).abs() < 0.02);
    }
}

#[test]
fn case_06_distinct_estimate_ignores_repeated_inserts() {
    for build in ALL_FILTERS {
        let (filter, _) = build(10_000, 0.001);
        assert_eq!(filter.stats().distinct, Some(0));
        for step in 1..=15_u64 {
            for n in (step - 1) * 1_000..step * 1_000 {
                filter.insert(&n.to_le_bytes());
                filter.insert(&n.to_le_bytes());
            }
            let estimate = filter.stats().distinct.unwrap() as f64;
            let distinct = step as f64 * 1_000.0;
            assert!((estimate / distinct - 1.0).abs() < 0.05, "{estimate} for {distinct}");
            assert_eq!(filter.stats().items, step * 2_000);
        }
    }
}
