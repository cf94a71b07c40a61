//! Times to live are spread, and never longer than configured (case C34).

use std::collections::BTreeMap;

use super::house::{House, MS, NULL_TTL, SECOND, VALUE_TTL};
use super::quiet;
use crate::answer::Tier;
use crate::ports::Slot;

const IDS: i64 = 10_000;
const JITTER: f64 = 0.2;

/// The remaining times of everything in the shared cache, in seconds, for ids from `0`.
async fn lifetimes(house: &House) -> BTreeMap<u64, usize> {
    let now = house.clock.unix_ms();
    let mut seconds = BTreeMap::new();
    for id in 0..IDS {
        let until = match house.stands(id).await {
            Slot::Value { until, .. } | Slot::Null { until } => until,
            other => panic!("{id}: {other:?}"),
        };
        *seconds.entry((until - now) / 1_000).or_default() += 1;
    }
    seconds
}

fn are_spread(lifetimes: &BTreeMap<u64, usize>, ttl: std::time::Duration) {
    let longest = ttl.as_secs();
    let shortest = (ttl.as_secs_f64() * (1.0 - JITTER)) as u64;
    for (second, many) in lifetimes {
        // The configured time itself is a millisecond that belongs to the next second.
        assert!((shortest..=longest).contains(second), "{second} s is out of range");
        let share = *many as f64 / IDS as f64;
        let even = 1.0 / (JITTER * ttl.as_secs_f64());
        // Six standard deviations above an even spread, or 1.3 times it where that is more.
        let noise = 6.0 * (even / IDS as f64).sqrt();
        assert!(share <= (1.3 * even).max(even + noise), "{share} of all end in second {second}");
    }
}

#[tokio::test]
async fn case_34_rows_and_sentinels_that_are_stored_together_do_not_expire_together() {
    for (exist, ttl) in [(true, VALUE_TTL), (false, NULL_TTL)] {
        let ids = if exist { 0..IDS } else { 0..0 };
        let jittered = |described: crate::Builder<_, _>| described.jitter(JITTER);
        let house = House::with(ids).open_gate().shared().tune(jittered).build().await;
        for id in 0..IDS {
            let _ = house.seen(id).await;
        }
        quiet().await;
        are_spread(&lifetimes(&house).await, ttl);
    }
}

#[tokio::test]
async fn case_34_locally_too_nothing_lives_longer_than_configured() {
    let jittered = |described: crate::Builder<_, _>| described.jitter(JITTER);
    let house = House::with(0..500).open_gate().tune(jittered).build().await;
    for id in 0..1_000 {
        let _ = house.seen(id).await;
    }
    let local = async |house: &House, ids: std::ops::Range<i64>| {
        let mut local = 0;
        for id in ids {
            local += usize::from(house.seen(id).await.1 == Tier::Local);
        }
        local
    };
    house.time.advance(NULL_TTL.mul_f64(1.0 - JITTER) - MS);
    assert_eq!(local(&house, 500..1_000).await, 500, "a sentinel lived shorter than configured");
    house.time.advance(VALUE_TTL.mul_f64(1.0 - JITTER) - NULL_TTL);
    assert_eq!(local(&house, 0..500).await, 500, "a row lived shorter than configured");
    house.time.advance(VALUE_TTL.mul_f64(JITTER) + NULL_TTL.mul_f64(JITTER) + MS);
    assert_eq!(local(&house, 0..1_000).await, 0, "something outlived its configured time");
    house.pass(SECOND).await;
}

#[tokio::test]
async fn case_34_a_hot_row_that_expires_is_loaded_once() {
    let house = House::with([7]).open_gate().build().await;
    let _ = house.seen(7).await;
    for _ in 0..3 {
        house.time.advance(VALUE_TTL);
        let before = house.loads();
        let readers: Vec<_> = (0..200).map(|_| house.spawn_get(7)).collect();
        for reader in readers {
            assert!(super::within(reader).await.unwrap().is_ok());
        }
        assert_eq!(house.loads(), before + 1);
    }
}

// Sharing takes nothing off the time that is left.
#[tokio::test]
async fn an_entry_says_when_it_ends() {
    let house = House::with([7]).open_gate().shared().build().await;
    let _ = house.seen(7).await;
    quiet().await;
    let end = house.clock.unix_ms() + u64::try_from(VALUE_TTL.as_millis()).unwrap();
    match house.stands(7).await {
        Slot::Value { until, .. } => assert_eq!(until, end),
        other => panic!("{other:?}"),
    }
    house.time.advance(VALUE_TTL - MS);
    assert!(matches!(house.stands(7).await, Slot::Value { .. }));
    house.time.advance(MS);
    assert_eq!(house.stands(7).await, Slot::Vacant);
}
