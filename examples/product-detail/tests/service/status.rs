//! The documents about the service itself.

use serde_json::Value;

use crate::fixture::{Service, json};

const NUMBERS: &[&str] = &[
    "/gate/generation",
    "/gate/items",
    "/gate/capacity",
    "/gate/fill_ratio",
    "/gate/expected_false_positive_rate",
    "/gate/bytes",
    "/counts/refused",
    "/counts/passed_maybe",
    "/counts/passed_unknown",
    "/counts/local/value_hits",
    "/counts/local/null_hits",
    "/counts/local/misses",
    "/counts/shared/value_hits",
    "/counts/shared/null_hits",
    "/counts/shared/misses",
    "/counts/shared/errors",
    "/counts/loader/loads",
    "/counts/loader/found",
    "/counts/loader/absent",
    "/counts/loader/errors",
    "/counts/loader/timeouts",
    "/counts/loader/shed",
    "/counts/nulls_stored/local",
    "/counts/nulls_stored/shared",
    "/in_flight/loads",
    "/in_flight/writes",
];

/// All places in a document, in order.
fn places(document: &Value, at: &str, into: &mut Vec<String>) {
    match document {
        Value::Object(fields) => {
            for (name, value) in fields {
                places(value, &format!("{at}/{name}"), into);
            }
        }
        _ => into.push(at.to_owned()),
    }
}

#[test]
fn the_guard_tells_how_it_is_doing() {
    let service = Service::ready(&["--seed", "100", "--capacity", "5000"]);
    let status = service.status();
    assert_eq!(status["enabled"], true);
    assert_eq!(status["gate"]["state"], "closed");
    assert_eq!(status["gate"]["reason"], Value::Null);
    assert_eq!(status["gate"]["family"], "bloom");
    assert_eq!(status["gate"]["items"], 100);
    assert_eq!(status["gate"]["capacity"], 5000);
    for pointer in NUMBERS {
        assert!(status.pointer(pointer).is_some_and(Value::is_number), "{pointer}");
    }
    service.get("/products/1");
    service.get("/products/1");
    service.get("/products/101");
    assert_eq!(service.number("/counts/loader/loads"), 1);
    assert_eq!(service.number("/counts/loader/found"), 1);
    assert_eq!(service.number("/counts/local/value_hits"), 1);
    assert_eq!(service.number("/counts/refused"), 1);
}

#[test]
fn without_a_guard_the_document_has_the_same_shape() {
    let guarded = Service::ready(&["--seed", "10"]);
    let service = Service::ready(&["--seed", "10", "--no-guard"]);
    service.get("/products/1");
    service.get("/products/1");
    service.get("/products/11");
    let status = service.status();
    let (mut with, mut without) = (Vec::new(), Vec::new());
    places(&guarded.status(), "", &mut with);
    places(&status, "", &mut without);
    assert_eq!(with, without);
    assert_eq!(status["enabled"], false);
    assert_eq!(status["gate"]["state"], "open");
    assert_eq!(status["counts"]["loader"]["loads"], 3);
    assert_eq!(status["counts"]["loader"]["found"], 2);
    assert_eq!(status["counts"]["loader"]["absent"], 1);
}

#[test]
fn a_gate_that_is_kept_open_refuses_nothing() {
    let service = Service::ready(&["--seed", "10", "--gate", "open"]);
    assert_eq!(service.get("/products/11").status, 404);
    let status = service.status();
    assert_eq!(status["gate"]["reason"], "forced");
    assert_eq!(status["counts"]["refused"], 0);
    assert_eq!(status["counts"]["loader"]["absent"], 1);
}

#[test]
fn the_default_table_is_large_and_the_first_lines_help() {
    let service = Service::ready(&[]);
    assert_eq!(json(&service.get("/products/100000"))["id"], 100_000);
    assert_eq!(service.number("/gate/items"), 100_000);
    assert_eq!(service.get("/healthz").status, 200);
    let lines = service.program.stdout();
    let commands: Vec<&str> = lines.lines().filter(|line| line.contains("curl ")).collect();
    assert_eq!(commands.len(), 3, "{lines}");
    for (command, status) in commands.iter().zip([200, 404, 200]) {
        let (_, path) = command.split_once(&service.url).unwrap();
        assert_eq!(service.get(path).status, status, "{command}");
    }
    // No bar where there is no terminal.
    let log = service.program.stderr();
    assert!(!log.contains('\r') && !log.contains("adding products"), "{log}");
}
