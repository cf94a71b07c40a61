//! Times to live: spread by the jitter, never longer than configured (case 34).

use std::collections::BTreeMap;

use super::harness::{Harness, MS, NULL_TTL, SECOND, VALUE_TTL};
use super::quiet;
use crate::answer::Tier;
use crate::ports::Slot;

const IDS: i64 = 10_000;
const JITTER: f64 = 0.2;

/// The remaining times of everything in the shared cache, in seconds, for ids from `0`.
async fn lifetimes(harness: &Harness) -> BTreeMap<u64, usize> {
    let now = harness.clock.unix_ms();
    let mut seconds = BTreeMap::new();
    for id in 0..IDS {
        let until = match harness.shared_slot(id).await {
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
        let jittered = |described: crate::GuardBuilder<_, _>| described.jitter(JITTER);
        let harness = Harness::with(ids).open_gate().shared().tune(jittered).build().await;
        for id in 0..IDS {
            let _ = harness.seen(id).await;
        }
        quiet().await;
        are_spread(&lifetimes(&harness).await, ttl);
    }
}

#[tokio::test]
async fn case_34_locally_too_nothing_lives_longer_than_configured() {
    let jittered = |described: crate::GuardBuilder<_, _>| described.jitter(JITTER);
    let harness = Harness::with(0..500).open_gate().tune(jittered).build().await;
    for id in 0..1_000 {
        let _ = harness.seen(id).await;
    }
    let local = async |harness: &Harness, ids: std::ops::Range<i64>| {
        let mut local = 0;
        for id in ids {
            local += usize::from(harness.seen(id).await.1 == Tier::Local);
        }
        local
    };
    harness.time.advance(NULL_TTL.mul_f64(1.0 - JITTER) - MS);
    assert_eq!(local(&harness, 500..1_000).await, 500, "a sentinel lived shorter than configured");
    harness.time.advance(VALUE_TTL.mul_f64(1.0 - JITTER) - NULL_TTL);
    assert_eq!(local(&harness, 0..500).await, 500, "a row lived shorter than configured");
    harness.time.advance(VALUE_TTL.mul_f64(JITTER) + NULL_TTL.mul_f64(JITTER) + MS);
    assert_eq!(local(&harness, 0..1_000).await, 0, "something outlived its configured time");
    harness.pass(SECOND).await;
}

#[tokio::test]
async fn case_34_a_hot_row_that_expires_is_loaded_once() {
    let harness = Harness::with([7]).open_gate().build().await;
    let _ = harness.seen(7).await;
    for _ in 0..3 {
        harness.time.advance(VALUE_TTL);
        let before = harness.loads();
        let readers: Vec<_> = (0..200).map(|_| harness.spawn_get(7)).collect();
        for reader in readers {
            assert!(super::within(reader).await.unwrap().is_ok());
        }
        assert_eq!(harness.loads(), before + 1);
    }
}

// Sharing takes nothing off the time that is left.
#[tokio::test]
async fn an_entry_says_when_it_ends() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    let _ = harness.seen(7).await;
    quiet().await;
    let end = harness.clock.unix_ms() + u64::try_from(VALUE_TTL.as_millis()).unwrap();
    match harness.shared_slot(7).await {
        Slot::Value { until, .. } => assert_eq!(until, end),
        other => panic!("{other:?}"),
    }
    harness.time.advance(VALUE_TTL - MS);
    assert!(matches!(harness.shared_slot(7).await, Slot::Value { .. }));
    harness.time.advance(MS);
    assert_eq!(harness.shared_slot(7).await, Slot::Empty);
}
