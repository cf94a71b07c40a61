//! The status document: its fields and its counts.

use serde_json::{Value, json};

use crate::client::{Client, id_of};
use crate::environment::{Environment, assert_no_panic, stop};
use crate::service::Service;

/// A false-positive rate so small that a test meets no false positive.
const EXACT: [&str; 2] = ["--false-positive-rate", "0.0000001"];

/// All fields, each with a value of its type.
fn shape() -> Value {
    json!({
        "enabled": true,
        "name": "product",
        "ready": true,
        "gate": {
            "state": "closed", "reason": null, "detail": null, "generation": 1, "family": "bloom",
            "items": 1, "distinct": 1, "capacity": 1, "fill_ratio": 0.5, "expected_false_positive_rate": 0.5,
            "current_false_positive_rate": 0.5, "bytes": 1, "building": false,
        },
        "counts": {
            "refused": 1, "passed_maybe": 1, "passed_unknown": 1,
            "local": {"value_hits": 1, "null_hits": 1, "misses": 1},
            "shared": {
                "value_hits": 1, "null_hits": 1, "misses": 1, "errors": 1, "undecodable": 1,
            },
            "loader": {
                "loads": 1, "found": 1, "absent": 1, "errors": 1, "timeouts": 1, "shed": 1,
                "panics": 1,
            },
            "nulls_stored": {"local": 1, "shared": 1},
            "stale_served": 1, "writes_ended": 1, "writes_unknown": 1, "writes_refused": 1,
            "writes_without_intent": 1,
        },
        "in_flight": {"loads": 1, "writes": 1},
        "guarded_routes": 1,
        "warm_up_error": null,
        "shared_cache_error": null,
    })
}

/// Fails unless each field of `example` is in `document` with the same type. A null in the example
/// also stands for a text.
fn assert_shape(document: &Value, example: &Value, at: &str) {
    match (document, example) {
        (Value::Object(found), Value::Object(fields)) => {
            for (name, example) in fields {
                let found = found.get(name).unwrap_or_else(|| panic!("no {at}/{name}"));
                assert_shape(found, example, &format!("{at}/{name}"));
            }
        }
        (Value::Number(found), Value::Number(example)) => {
            let fits = found.is_u64() == example.is_u64() || found.is_f64() == example.is_f64();
            assert!(fits, "{at} is {found}");
            assert!(found.as_f64().unwrap() >= 0.0, "{at} is {found}");
        }
        // An open gate has no filter.
        (Value::Null, Value::Number(_)) if ["/gate/distinct", "/gate/capacity"].contains(&at) => {}
        (Value::String(_) | Value::Null, Value::Null)
        | (Value::Bool(_), Value::Bool(_))
        | (Value::String(_), Value::String(_)) => {}
        (found, _) => panic!("{at} is {found}"),
    }
}

#[test]
fn the_status_document_has_all_fields_in_every_state() {
    let env = Environment::sqlite();
    let closed = env.serve(100, &["--capacity", "12345"]);
    let guard = closed.guard();
    assert_shape(&guard, &shape(), "");
    assert_eq!(guard["enabled"], true);
    assert_eq!(guard["ready"], true);
    assert_eq!(guard["guarded_routes"], 1);
    assert_eq!(guard["gate"]["state"], "closed");
    assert_eq!(guard["gate"]["reason"], Value::Null);
    assert_eq!(guard["gate"]["detail"], Value::Null);
    assert_eq!(guard["gate"]["items"], 100);
    assert_eq!(guard["gate"]["capacity"], 12_345);
    assert!(guard["gate"]["distinct"].as_u64().is_some_and(|ids| (95..=100).contains(&ids)));
    assert_eq!(guard["gate"]["building"], false);
    assert_eq!(guard["warm_up_error"], Value::Null);
    stop(&closed);

    let exact = env.serve(0, &["--gate", "bitmap"]);
    let guard = exact.guard();
    assert_shape(&guard, &shape(), "");
    assert_eq!(guard["gate"]["family"], "bitmap");
    assert_eq!(guard["gate"]["distinct"], 100);
    assert_eq!(guard["gate"]["capacity"], Value::Null);
    assert_eq!(guard["gate"]["current_false_positive_rate"], 0.0);
    stop(&exact);

    let open = env.serve(0, &["--gate", "open"]);
    let guard = open.guard();
    assert_shape(&guard, &shape(), "");
    assert_eq!(guard["gate"]["state"], "open");
    assert_eq!(guard["gate"]["reason"], "forced");
    assert!(guard["gate"]["detail"].is_string(), "{guard}");
    stop(&open);

    let unguarded = env.start_unguarded(0);
    assert_eq!([1, 1, 101].map(|id| unguarded.product(id)), [200, 200, 404]);
    let guard = unguarded.guard();
    assert_shape(&guard, &shape(), "");
    assert_eq!(guard["enabled"], false);
    assert_eq!(guard["guarded_routes"], 0);
    let loads = &guard["counts"]["loader"];
    assert_eq!(
        (&loads["loads"], &loads["found"], &loads["absent"]),
        (&3.into(), &2.into(), &1.into())
    );
    stop(&unguarded);
}

/// Asserts all counts: those that are named, and 0 for the others.
fn assert_counts(service: &Service, step: &str, named: &[(&str, u64)]) {
    service.until_idle();
    let guard = service.guard();
    let mut left: Vec<(&str, u64)> = named.to_vec();
    let mut check = |name: String, found: &Value| {
        let expected = left.iter().position(|(wanted, _)| *wanted == name);
        let expected = expected.map_or(0, |at| left.swap_remove(at).1);
        assert_eq!(found, expected, "{name} after {step}: {guard}");
    };
    for (name, found) in guard["counts"].as_object().unwrap() {
        match found.as_object() {
            Some(group) => {
                for (member, found) in group {
                    check(format!("{name}.{member}"), found);
                }
            }
            None => check(name.clone(), found),
        }
    }
    assert!(left.is_empty(), "not in the document: {left:?}");
}

#[test]
fn the_status_counts_are_exact_on_sqlite() {
    let env = Environment::sqlite();
    let service = env.serve(100, &EXACT);
    let mut client = Client::of(&service);
    assert_counts(&service, "the start", &[]);

    for id in 1..=10 {
        assert_eq!(client.get(id).status, 200);
        assert_eq!(client.get(id).status, 200);
    }
    for id in 1_000..1_020 {
        assert_eq!(client.get(id).status, 404);
    }
    // Texts that are no id don't reach the gate.
    for path in ["/products/0", "/products/x", "/products/007"] {
        assert_eq!(client.request("GET", path, "").status, 404);
    }
    assert_counts(
        &service,
        "reads",
        &[
            ("refused", 20),
            ("passed_maybe", 20),
            ("local.value_hits", 10),
            ("local.misses", 10),
            ("loader.loads", 10),
            ("loader.found", 10),
        ],
    );

    assert_eq!(id_of(&client.post("new")), 101);
    assert_eq!(client.put(1, "changed").status, 200);
    assert_eq!(client.delete(2).status, 204);
    // Refused: no query, no write.
    assert_eq!(client.put(1_000, "absent").status, 404);
    assert_eq!(client.delete(1_001).status, 404);
    assert_counts(
        &service,
        "writes",
        &[
            ("refused", 22),
            ("passed_maybe", 22),
            ("local.value_hits", 10),
            ("local.misses", 10),
            ("loader.loads", 10),
            ("loader.found", 10),
            ("writes_ended", 3),
        ],
    );

    assert_eq!(client.get(101).status, 200);
    assert_eq!(client.get(1).status, 200);
    // The deleted id passes the gate: the first read loads, the others find the sentinel.
    for _ in 0..5 {
        assert_eq!(client.get(2).status, 404);
    }
    assert_counts(
        &service,
        "reads of what was written",
        &[
            ("refused", 22),
            ("passed_maybe", 29),
            ("local.value_hits", 10),
            ("local.null_hits", 4),
            ("local.misses", 13),
            ("loader.loads", 13),
            ("loader.found", 12),
            ("loader.absent", 1),
            ("nulls_stored.local", 1),
            ("writes_ended", 3),
        ],
    );
    let guard = service.guard();
    assert_eq!(guard["gate"]["items"], 101);
    assert_eq!(guard["in_flight"], json!({"loads": 0, "writes": 0}));
    assert_no_panic(&service);
}

#[test]
fn the_status_counts_are_exact_on_postgres_and_redis() {
    let env = Environment::postgres_and_redis();
    let service = env.serve(100, &EXACT);
    let mut client = Client::of(&service);
    for id in 1..=10 {
        assert_eq!(client.get(id).status, 200);
        assert_eq!(client.get(id).status, 200);
    }
    for id in 1_000..1_020 {
        assert_eq!(client.get(id).status, 404);
    }
    assert_eq!(id_of(&client.post("new")), 101);
    assert_eq!(client.put(1, "changed").status, 200);
    assert_eq!(client.delete(2).status, 204);
    for id in [101, 1] {
        assert_eq!(client.get(id).status, 200);
    }
    for _ in 0..5 {
        assert_eq!(client.get(2).status, 404);
    }
    assert_counts(
        &service,
        "the first instance",
        &[
            ("refused", 20),
            ("passed_maybe", 29),
            ("local.value_hits", 10),
            ("local.null_hits", 4),
            ("local.misses", 13),
            ("shared.misses", 13),
            ("loader.loads", 13),
            ("loader.found", 12),
            ("loader.absent", 1),
            ("nulls_stored.local", 1),
            ("nulls_stored.shared", 1),
            ("writes_ended", 3),
        ],
    );
    assert_eq!(env.slots().len(), 11, "{:?}", env.slots());
    drop(client);
    stop(&service);

    // The next instance finds the products in the shared cache. Its gate refuses the deleted id.
    let service = env.serve(0, &EXACT);
    let mut client = Client::of(&service);
    for id in [1, 3, 4, 5, 6, 7, 8, 9, 10, 101] {
        assert_eq!(client.get(id).status, 200);
        assert_eq!(client.get(id).status, 200);
    }
    assert_eq!(client.get(2).status, 404);
    assert_counts(
        &service,
        "the second instance",
        &[
            ("refused", 1),
            ("passed_maybe", 20),
            ("local.value_hits", 10),
            ("local.misses", 10),
            ("shared.value_hits", 10),
        ],
    );
    assert_no_panic(&service);
}
