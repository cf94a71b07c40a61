//! Settings that `build` refuses, each with an error that names its field.

use std::convert::Infallible;
use std::time::Duration;

use super::fake_backplane::FakeBackplane;
use super::harness::{MS, SECOND};
use super::store::{Faults, TestStore};
use crate::backplane::{Alone, FleetSettings};
use crate::clock::Clock;
use crate::error::ConfigError;
use crate::gate::Gate;
use crate::guard::{Guard, GuardBuilder};
use crate::loader;
use crate::warm_up::Keys;

fn sane(name: &str) -> GuardBuilder<i64, String> {
    Guard::builder(name)
        .source(Keys::new([1_i64]))
        .loader(loader::from_fn(|_: i64| async { Ok::<_, Infallible>(None) }))
}

type Change = fn(GuardBuilder<i64, String>) -> GuardBuilder<i64, String>;

#[tokio::test]
async fn nonsense_is_refused_by_the_name_of_its_field() {
    let nonsense: &[(&str, Change)] = &[
        ("value_ttl", |b| b.value_ttl(Duration::ZERO)),
        ("value_ttl", |b| b.value_ttl(Duration::MAX)),
        ("null_ttl", |b| b.null_ttl(Duration::ZERO)),
        ("null_ttl", |b| b.null_ttl(367 * 24 * 3_600 * SECOND)),
        ("jitter", |b| b.jitter(1.0)),
        ("jitter", |b| b.jitter(-0.1)),
        ("jitter", |b| b.jitter(f64::NAN)),
        ("store_timeout", |b| b.store_timeout(Duration::ZERO)),
        ("store_timeout", |b| b.store_timeout(61 * SECOND)),
        // Twice the budget must fit into what W leaves after `run`.
        ("store_timeout", |b| b.store_timeout(3 * SECOND)),
        ("load_timeout", |b| b.load_timeout(Duration::ZERO)),
        ("load_timeout", |b| b.load_timeout(601 * SECOND)),
        ("queue_timeout", |b| b.queue_timeout(601 * SECOND)),
        ("write_window", |b| b.write_window(999 * MS)),
        ("write_window", |b| b.write_window(601 * SECOND)),
        ("write_window", |b| b.write_window(Duration::MAX)),
        ("lease_ttl", |b| b.lease_ttl(Duration::ZERO)),
        // 2 × 100 ms + 250 ms + 2 s, less one.
        ("lease_ttl", |b| b.lease_ttl(2_449 * MS)),
        ("stale_if_error", |b| b.stale_if_error(Duration::MAX)),
        ("max_concurrent_loads", |b| b.max_concurrent_loads(0)),
        ("max_unseen_loads", |b| b.max_unseen_loads(0)),
        ("max_unseen_loads", |b| b.max_concurrent_loads(4).max_unseen_loads(5)),
        ("local_value_capacity", |b| b.local_value_capacity(0)),
        ("local_null_capacity", |b| b.local_null_capacity(0)),
        // There is no store that keeps a log.
        ("fleet", |b| b.fleet(FleetSettings::default())),
        ("single_instance", |b| b.fleet(FleetSettings::default()).single_instance()),
        ("single_instance", |b| b.backplane(Alone).single_instance()),
        ("fleet", |b| b.backplane(Alone).fleet(FleetSettings::default())),
        // A sum that would overflow is nonsense, not a panic.
        ("store_timeout", |b| b.store_timeout(Duration::MAX)),
        ("load_timeout", |b| b.load_timeout(Duration::MAX)),
        ("queue_timeout", |b| b.queue_timeout(Duration::MAX)),
    ];
    for (field, change) in nonsense {
        match change(sane("fine")).build().await {
            Err(ConfigError::Setting { field: named, problem, fix }) => {
                assert_eq!(named, *field, "{problem}; {fix}");
            }
            other => panic!("{field}: {other:?}"),
        }
    }
    for name in ["", "Upper", "with space", "umläut", "a/b", "a:b", &"x".repeat(65)] {
        let refused = sane(name).build().await;
        assert!(
            matches!(refused, Err(ConfigError::Setting { field: "builder(name)", .. })),
            "{name:?}"
        );
    }
}

#[tokio::test]
async fn case_02_a_rate_that_is_none_is_refused() {
    for rate in [0.0, -0.0, 1.0, 1.5, 2.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let refused = sane("fine").gate(Gate::bloom().false_positive_rate(rate)).build().await;
        assert!(matches!(refused, Err(ConfigError::Filter(_))), "{rate}: {refused:?}");
    }
}

#[tokio::test]
async fn a_gate_that_its_keys_or_its_own_kind_cant_have_is_refused() {
    let text = || {
        Guard::<String, String>::builder("fine")
            .source(Keys::new(["a".to_owned()]))
            .loader(loader::from_fn(|_: String| async { Ok::<_, Infallible>(None) }))
    };
    let refused = text().gate(Gate::bitmap()).build().await;
    assert!(matches!(refused, Err(ConfigError::Setting { field: "gate", .. })), "{refused:?}");
    assert!(text().gate(Gate::exact()).build().await.is_ok());
    assert!(sane("fine").gate(Gate::bitmap()).build().await.is_ok());
    for exact in [Gate::bitmap, Gate::exact] {
        for (field, gate) in [
            ("gate.items", exact().items(1)),
            ("gate.false_positive_rate", exact().false_positive_rate(0.01)),
            ("gate.hash", exact().hash(bloomgate_filter::HashAlgorithm::Xxh3)),
        ] {
            match sane("fine").gate(gate).build().await {
                Err(ConfigError::Setting { field: named, .. }) => assert_eq!(named, field),
                other => panic!("{field}: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn what_is_required_is_asked_for() {
    let no_source = Guard::<i64, String>::builder("fine")
        .loader(loader::from_fn(|_: i64| async { Ok::<_, Infallible>(None) }))
        .build();
    assert!(matches!(no_source.await, Err(ConfigError::Setting { field: "source", .. })));
    let no_loader = Guard::<i64, String>::builder("fine").source(Keys::new([1_i64])).build();
    assert!(matches!(no_loader.await, Err(ConfigError::Setting { field: "loader", .. })));
}

#[tokio::test]
async fn the_outer_ends_of_the_ranges_are_fine() {
    let fine: &[Change] = &[
        |b| b.value_ttl(MS).null_ttl(MS),
        |b| b.value_ttl(366 * 24 * 3_600 * SECOND),
        |b| b.jitter(0.0),
        |b| b.jitter(0.999),
        |b| b.lease_ttl(2_450 * MS),
        |b| b.queue_timeout(Duration::ZERO).stale_if_error(Duration::ZERO),
        |b| b.write_window(SECOND),
        |b| b.write_window(600 * SECOND),
        |b| b.max_concurrent_loads(1),
        |b| b.max_concurrent_loads(1).max_unseen_loads(1),
        |b| b.local_value_capacity(1).local_null_capacity(1),
        |b| b.gate(Gate::open()),
    ];
    for (number, change) in fine.iter().enumerate() {
        let built = change(sane("a-z_0.9")).build().await;
        assert!(built.is_ok(), "no. {number}: {built:?}");
    }
}

#[tokio::test]
async fn a_store_that_will_never_do_is_refused_and_one_that_is_down_is_not() {
    let (clock, _time) = Clock::manual();
    let store = TestStore::new(clock.clone(), Default::default());
    store.faults(Faults { unsupported: true, ..Faults::default() });
    let of = |store| sane("fine").clock(clock.clone()).store(store).single_instance();
    let refused = of(store.clone()).build().await;
    assert!(matches!(refused, Err(ConfigError::Store(_))), "{refused:?}");
    store.faults(Faults { down: true, ..Faults::default() });
    let built = of(store).build().await;
    assert!(built.is_ok(), "{built:?}");
}

#[tokio::test]
async fn a_store_without_a_log_needs_a_backplane_or_a_declaration() {
    let (clock, _time) = Clock::manual();
    let store = TestStore::new(clock.clone(), Default::default());
    let refused = sane("fine").clock(clock.clone()).store(store.clone()).build().await;
    match refused {
        Err(error @ ConfigError::Setting { field: "store", .. }) => {
            assert!(error.to_string().contains("declare single_instance()"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let single = sane("fine").clock(clock.clone()).store(store.clone()).single_instance();
    let built = single.build().await;
    assert!(built.is_ok(), "{built:?}");
    let backplane = FakeBackplane::new(Default::default());
    let built = sane("fine").clock(clock).store(store).backplane(backplane).build().await;
    assert!(built.is_ok(), "{built:?}");
}
