//! Tests of the guard's counters in the report.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::server::{Reply, Server};
use crate::{attack, shop};

#[test]
fn a_guard_that_can_not_be_read_stops_the_run_before_any_traffic() {
    for (status, document) in [(404, "{}"), (200, "hello"), (200, "{}"), (200, r#"{"counts":[]}"#)]
    {
        let server = Server::start(move |_, _| Reply::Answer(status, document.to_owned()));
        let flags = format!("--requests 10 --guard-url {}", server.url("/guard"));
        let ran = attack(&server.url("/{id}"), &flags);
        assert_eq!(ran.code, Some(2), "{document}");
        assert!(ran.stderr.starts_with("error: --guard-url: "), "{}", ran.stderr);
        assert_eq!((ran.stderr.lines().count(), ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
        assert!(server.paths().is_empty());
    }
}

#[test]
fn a_guard_that_goes_away_leaves_the_rest_of_the_report_and_fails_the_run() {
    for (after, says) in [
        ("gone", "not the status document of a guard"),
        (r#"{"counts":{"refused":6}}"#, "went backwards, as after a restart"),
    ] {
        let readings = AtomicU64::new(0);
        let server = shop(move || match readings.fetch_add(1, Ordering::Relaxed) {
            0 => r#"{"counts":{"refused":7,"loader":{"absent":0}}}"#.to_owned(),
            _ => after.to_owned(),
        });
        let flags = format!("--requests 10 --json --guard-url {}", server.url("/guard"));
        let ran = attack(&server.url("/{id}"), &flags);
        let json = ran.json();
        assert_eq!((ran.code, &json["guard"]), (Some(1), &Value::Null));
        assert_eq!(
            (&json["attack"]["answered"], &json["nothing_measured"]),
            (&10.into(), &true.into())
        );
        let warning = json["warnings"][0].as_str().unwrap();
        assert!(
            warning.starts_with("nothing was measured: the guard's counters are lost: "),
            "{json}"
        );
        assert!(warning.contains(says), "{json}");
        assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    }
}

#[test]
fn a_guard_that_counts_no_attack_request_fails_the_run() {
    // A wrong path or another guard's URL: 404 from elsewhere. A route that takes other ids: 400.
    for status in [404, 400] {
        let server = Server::start(move |path, _| match path {
            "/guard" => Reply::Answer(200, r#"{"counts":{"refused":5}}"#.to_owned()),
            _ => Reply::Answer(status, String::new()),
        });
        let flags = format!("--requests 20 --guard-url {}", server.url("/guard"));
        let ran = attack(&server.url("/{id}"), &flags);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout);
        let says = "warning: nothing was measured: the guard at --guard-url counted none of the 20";
        assert!(ran.stdout.contains(says), "{}", ran.stdout);
        assert!(!ran.stdout.contains("per 1,000"), "{}", ran.stdout);
        assert_eq!(ran.stdout.contains("20 attack requests were answered 400"), status == 400);

        let json = attack(&server.url("/{id}"), &format!("{flags} --json")).json();
        assert_eq!(json["nothing_measured"], true);
        assert_eq!(json["guard"]["absent_loads_per_1000"], Value::Null);
    }
}

#[test]
fn requests_that_the_guard_does_not_account_for_are_pointed_out() {
    let readings = AtomicU64::new(0);
    let server = shop(move || {
        let n = readings.fetch_add(1, Ordering::Relaxed);
        format!(r#"{{"counts":{{"refused":{},"loader":{{"absent":{}}}}}}}"#, 90 * n, 2 * n)
    });
    let flags = format!("--requests 100 --guard-url {}", server.url("/guard"));
    let ran = attack(&server.url("/{id}"), &flags);
    assert_eq!(ran.code, Some(0));
    let says = "warning: the guard accounts for 92 of the 100 absent ids";
    assert!(ran.stdout.contains(says), "{}", ran.stdout);
}

#[test]
fn an_open_gate_is_pointed_out() {
    for (before, after, says) in [
        ("open", "open", "the gate was open before and after the run (the warm-up runs)"),
        ("open", "closed", "the gate was open before the run (the warm-up runs)"),
        ("closed", "open", "the gate was open after the run (the warm-up runs)"),
    ] {
        let readings = AtomicU64::new(0);
        let server = shop(move || {
            let n = readings.fetch_add(1, Ordering::Relaxed);
            let state = if n == 0 { before } else { after };
            format!(
                r#"{{"gate":{{"state":"{state}","reason":"warming_up","detail":"the warm-up runs"}},
                "counts":{{"loader":{{"absent":{}}}}}}}"#,
                n * 10
            )
        });
        let flags = format!("--requests 10 --guard-url {}", server.url("/guard"));
        let ran = attack(&server.url("/{id}"), &flags);
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.contains(&format!("warning: {says}")), "{}", ran.stdout);
    }
}
