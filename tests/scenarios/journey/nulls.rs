//! Absent ids that pass the gate, which cost one load each.

use crate::client::{Client, count};
use crate::environment::{Environment, assert_no_panic, stop};
use crate::service::Service;

/// A gate with many false positives.
const LEAKY: [&str; 6] = ["--false-positive-rate", "0.3", "--capacity", "2000", "--null-ttl", "1h"];

/// Reads absent ids until one passes the gate, and returns it.
fn false_positive(service: &Service) -> i64 {
    let mut client = Client::of(service);
    for id in 1 << 41.. {
        assert_eq!(client.get(id).status, 404);
        if count(&client.guard(), "/counts/loader/absent") > 0 {
            return id;
        }
        assert!(id < (1 << 41) + 10_000, "nothing passes");
    }
    unreachable!()
}

/// Finds a false positive and reads it, 100 times in all.
fn case_26_one_load(service: &Service) -> i64 {
    let id = false_positive(service);
    let mut client = Client::of(service);
    for _ in 1..100 {
        assert_eq!(client.get(id).status, 404);
    }
    service.until_idle();
    let guard = service.guard();
    for (pointer, expected) in [
        ("/counts/passed_maybe", 100),
        ("/counts/loader/loads", 1),
        ("/counts/loader/absent", 1),
        ("/counts/local/null_hits", 99),
        ("/counts/local/value_hits", 0),
        ("/counts/local/misses", 1),
        ("/counts/nulls_stored/local", 1),
    ] {
        assert_eq!(count(&guard, pointer), expected, "{pointer} in {guard}");
    }
    id
}

#[test]
fn case_26_a_false_positive_costs_one_load_on_sqlite() {
    let env = Environment::sqlite();
    let service = env.serve(2_000, &LEAKY);
    case_26_one_load(&service);
    assert_no_panic(&service);
}

/// With both protocols of Redis, which encode null differently.
#[test]
fn case_26_a_false_positive_costs_one_load_for_all_that_share_a_cache() {
    for protocol in ["resp2", "resp3"] {
        let env = Environment::postgres_and_redis();
        let url = format!("{}/0?protocol={protocol}", env.redis().url());
        let flags = [&LEAKY[..], &["--redis-url", &url]].concat();
        let service = env.serve(2_000, &flags);
        let id = case_26_one_load(&service);
        let guard = service.guard();
        assert_eq!(count(&guard, "/counts/nulls_stored/shared"), 1, "{guard}");
        assert_eq!(count(&guard, "/counts/shared/null_hits"), 0, "{guard}");
        assert_eq!(count(&guard, "/counts/shared/misses"), 1, "{guard}");
        stop(&service);

        // Another generation may refuse the id; an open gate doesn't.
        let flags = [&flags[..], &["--gate", "open"]].concat();
        let service = env.serve(0, &flags);
        let mut client = Client::of(&service);
        service.until_idle();
        let before = service.guard();
        for _ in 0..100 {
            assert_eq!(client.get(id).status, 404);
        }
        let guard = service.guard();
        for (pointer, expected) in [
            ("/counts/loader/loads", 0),
            ("/counts/shared/null_hits", 1),
            ("/counts/shared/misses", 0),
            ("/counts/local/null_hits", 99),
            ("/counts/local/misses", 1),
            ("/counts/nulls_stored/shared", 0),
        ] {
            let more = count(&guard, pointer) - count(&before, pointer);
            assert_eq!(more, expected, "{protocol}: {pointer} from {before} to {guard}");
        }
        stop(&service);
    }
}

/// An id that was inserted without the guard is found once its sentinel has expired.
#[test]
fn case_24_a_sentinel_ends_with_its_time_to_live() {
    let env = Environment::postgres_and_redis();
    let service = env.serve(0, &["--gate", "open", "--null-ttl", "1s"]);
    assert_eq!(service.product(1), 404);
    let hits = service.count("/counts/local/null_hits");
    service.until("remembered", || {
        assert_eq!(service.product(1), 404);
        service.count("/counts/local/null_hits") > hits
    });
    env.postgres()
        .psql("INSERT INTO products (name, price_cents, description) VALUES ('by hand', 1, '')");
    service.until("found", || service.product(1) == 200);
    assert_no_panic(&service);
}
