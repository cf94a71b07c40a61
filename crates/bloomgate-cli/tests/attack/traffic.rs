//! Tests of sending, counting and ending.

use std::collections::HashSet;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::server::{Reply, Server};
use crate::{CEILING, attack, finish, plain_shop, shop, spawn};

#[test]
fn every_request_is_sent_once_and_counted_once() {
    let readings = AtomicU64::new(0);
    let server = shop(move || {
        let n = readings.fetch_add(1, Ordering::Relaxed);
        format!(
            r#"{{"enabled":true,"gate":{{"state":"closed"}},"counts":{{"refused":{},
            "loader":{{"loads":{},"absent":{},"errors":0,"shed":0,"timeouts":0}}}}}}"#,
            100 + n * 4491,
            10 + n * 70,
            5 + n * 9
        )
    });
    let flags = format!(
        "--guard-url {} --requests 4500 --connections 16 --legit-share 0.1 --legit-ids 1-1000 --json",
        server.url("/guard")
    );
    let ran = attack(&server.url("/products/{id}"), &flags);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stderr, "");

    let json = ran.json();
    assert_eq!(json["ended"], "finished");
    assert_eq!(json["interrupted"], false);
    assert_eq!(json["attack"]["requests"], 4500);
    assert_eq!(json["attack"]["answered"], 4500);
    assert_eq!(json["attack"]["statuses"], serde_json::json!({"404": 4500}));
    assert_eq!(json["legit"]["requests"], 500);
    assert_eq!(json["legit"]["statuses"], serde_json::json!({"200": 500}));
    assert_eq!(json["connects"], 16, "connections are kept alive");
    assert_eq!((&json["legit_non_2xx"], &json["attack_2xx"]), (&0.into(), &0.into()));
    for error in ["connect", "transport", "timeouts", "unanswered"] {
        assert_eq!(json["errors"][error], 0, "{error}");
    }
    for side in ["attack", "legit"] {
        let latency = |name: &str| json[side]["latency_us"][name].as_u64().unwrap();
        assert!(latency("p50") <= latency("p99") && latency("p99") <= latency("p999"));
        assert!(latency("p999") <= latency("max") + latency("max") / 500);
    }
    let guard = &json["guard"];
    assert_eq!((&guard["absent_loads"], &guard["absent_loads_per_1000"]), (&9.into(), &2.0.into()));
    assert_eq!((&guard["refused"], &guard["refused_per_1000"]), (&4491.into(), &998.0.into()));
    assert_eq!((&guard["loads"], &guard["enabled"]), (&70.into(), &true.into()));
    assert_eq!(
        (&json["nothing_measured"], &json["warnings"]),
        (&false.into(), &Value::Array(vec![]))
    );
    assert!(json["seed"].as_u64().unwrap() < 1 << 53);

    let (attacks, legit): (Vec<u64>, Vec<u64>) =
        server.ids().into_iter().partition(|&id| id > 1000);
    assert_eq!((attacks.len(), legit.len()), (4500, 500));
    assert_eq!(attacks.iter().collect::<HashSet<_>>().len(), 4500);
    assert!(attacks.iter().all(|&id| id > 1 << 40 && id <= i64::MAX as u64));
    let most = legit.iter().map(|id| legit.iter().filter(|other| *other == id).count()).max();
    // Zipf's first rank has 13 %, 67 of 500; evenly spread ids would come up a few times at most.
    assert!(most.unwrap() > 30, "{most:?}");
}

#[test]
fn refusals_of_legit_ids_are_reported_and_can_fail_the_run() {
    let server = Server::start(|_, _| Reply::Answer(404, String::new()));
    let flags = "--requests 30 --legit-share 0.25 --legit-ids 1-5 --connections 2";
    let url = server.url("/{id}");
    let ran = attack(&url, flags);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("LEGIT NON-2XX: 10 of 10 legit requests."), "{}", ran.stdout);
    assert!(ran.stdout.contains("10 of them are 404: false refusals"), "{}", ran.stdout);
    assert!(ran.stdout.contains("random integer ids, seed "), "{}", ran.stdout);

    let ran = attack(&url, &format!("{flags} --fail-on-refusal --json"));
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.json()["legit_404"], 10);

    let busy = Server::start(|path, _| match path.len() {
        0..=2 => Reply::Answer(503, String::new()),
        _ => Reply::Answer(404, String::new()),
    });
    let ran = attack(&busy.url("/{id}"), &format!("{flags} --fail-on-refusal --json"));
    assert_eq!(ran.code, Some(0), "503 is no refusal");
    assert_eq!((&ran.json()["legit_non_2xx"], &ran.json()["legit_404"]), (&10.into(), &0.into()));
}

#[test]
fn attack_ids_that_exist_are_pointed_out() {
    let server = plain_shop();
    let ran = attack(
        &server.url("/products/{id}"),
        "--requests 100 --profile sequential --start 951 --json",
    );
    assert_eq!(ran.json()["attack_2xx"], 50);
    assert!(ran.stderr.contains("50 attack requests were answered 2xx"), "{}", ran.stderr);
}

#[test]
fn a_rate_is_not_exceeded() {
    let server = plain_shop();
    let ran = attack(&server.url("/{id}"), "--rate 200 --duration 500ms --connections 8 --json");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let json = ran.json();
    let (sent, seconds) =
        (json["attack"]["requests"].as_u64().unwrap(), json["elapsed_seconds"].as_f64().unwrap());
    assert_eq!((&json["ended"], &json["rate"]), (&"duration".into(), &200.into()));
    assert!(sent >= 1 && sent as f64 <= 200.0 * seconds + 1.0, "{sent} in {seconds} s");
    assert_eq!(server.paths().len() as u64, sent);
}

#[test]
fn a_rate_with_a_number_of_requests_ends() {
    let server = plain_shop();
    let ran = attack(&server.url("/{id}"), "--rate 2000 --requests 100 --connections 8 --json");
    assert_eq!((ran.code, &ran.json()["attack"]["answered"]), (Some(0), &100.into()));
}

#[test]
fn open_loop_latency_includes_the_wait_for_a_slow_server() {
    let slow = || Server::start(|_, _| Reply::Late(Duration::from_millis(20), 404));
    let flags = "--requests 15 --connections 1 --json";
    let (open, closed) = (slow(), slow());
    let open = attack(&open.url("/{id}"), &format!("{flags} --rate 1000")).json();
    // One connection at 20 ms each ends no sooner than 300 ms after the start; the last request was
    // due after 14 ms. The server's waits are exact lower bounds, so that this holds on any machine.
    assert!(open["attack"]["latency_us"]["max"].as_u64().unwrap() >= 280_000, "{open}");
    let closed = attack(&closed.url("/{id}"), flags).json();
    assert!(closed["attack"]["latency_us"]["p50"].as_u64().unwrap() >= 20_000, "{closed}");
}

#[test]
fn ctrl_c_prints_what_there_is() {
    for (flags, json) in [("--json", true), ("--rate 300", false)] {
        // After 50 requests the server falls silent: the run can't end by itself.
        let server = Server::start(|_, before| match before {
            0..50 => Reply::Answer(404, String::new()),
            _ => Reply::Silence,
        });
        let child = spawn(
            &server.url("/{id}"),
            &format!("--requests 1000000 --connections 4 --timeout 60m {flags}"),
        );
        let begun = Instant::now();
        while server.paths().len() < 54 {
            assert!(begun.elapsed() < CEILING, "only {} requests", server.paths().len());
            std::thread::sleep(Duration::from_millis(5));
        }
        let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        let ran = finish(child);
        assert_eq!(ran.code, Some(130), "{}", ran.stderr);
        if json {
            let json = ran.json();
            assert_eq!((&json["interrupted"], &json["ended"]), (&true.into(), &"interrupt".into()));
            assert_eq!(
                (&json["attack"]["requests"], &json["attack"]["answered"]),
                (&54.into(), &50.into())
            );
            assert_eq!(json["errors"]["unanswered"], 4);
        } else {
            assert!(ran.stdout.contains("50 requests answered in"), "{}", ran.stdout);
            assert!(ran.stdout.contains("(interrupted)"), "{}", ran.stdout);
        }
    }
}

#[test]
fn timeouts_are_counted_apart() {
    let server = Server::start(|path, _| match path {
        "/7" | "/9" => Reply::Silence,
        _ => Reply::Answer(404, String::new()),
    });
    let ran = attack(
        &server.url("/{id}"),
        "--requests 20 --profile sequential --start 1 --connections 2 --timeout 4s --json",
    );
    let json = ran.json();
    assert_eq!((&json["errors"]["timeouts"], &json["attack"]["answered"]), (&2.into(), &18.into()));
    assert_eq!((ran.code, &json["attack"]["requests"]), (Some(0), &20.into()));
}

#[test]
fn connections_that_the_server_closes_are_replaced() {
    let server = Server::start(|_, before| match before % 5 {
        4 => Reply::Last(404),
        _ => Reply::Answer(404, String::new()),
    });
    let ran = attack(&server.url("/{id}"), "--requests 500 --connections 4 --json");
    let json = ran.json();
    assert_eq!((ran.code, &json["attack"]["answered"]), (Some(0), &500.into()), "{}", ran.stdout);
    assert_eq!(json["errors"]["transport"], 0);
    let (ids, connects) = (server.ids(), json["connects"].as_u64().unwrap());
    assert_eq!((ids.len(), ids.iter().collect::<HashSet<_>>().len()), (500, 500));
    assert!((100..=104).contains(&connects), "{connects}");
}

#[test]
fn a_server_that_drops_every_connection_is_given_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let ran =
        attack(&format!("http://{address}/{{id}}"), "--requests 100000 --connections 2 --json");
    let json = ran.json();
    assert_eq!((ran.code, &json["ended"]), (Some(1), &"gave_up".into()), "{}", ran.stdout);
    assert_eq!(json["attack"]["answered"], 0);
    assert!(json["attack"]["requests"].as_u64().unwrap() <= 24, "{json}");
    assert!(json["attack"]["latency_us"].is_null());
    assert!(ran.stderr.contains("gave up"), "{}", ran.stderr);
}

#[test]
fn errors_instead_of_answers_fail_a_run_without_a_guard() {
    for (status, advice) in [(400, "see --ids"), (401, "add --header"), (301, "redirects")] {
        let server = Server::start(move |_, _| Reply::Answer(status, String::new()));
        let ran = attack(&server.url("/{id}"), "--requests 20");
        assert_eq!(ran.code, Some(1), "{}", ran.stdout);
        assert!(ran.stdout.contains("warning: nothing was measured"), "{}", ran.stdout);
        assert!(ran.stdout.contains(advice), "{}", ran.stdout);
    }
}
