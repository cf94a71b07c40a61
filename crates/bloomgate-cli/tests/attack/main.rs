//! Tests of the built `bloomgate attack` against a small server.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test's helpers may fail loudly"
)]

mod server;

use std::collections::HashSet;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use server::{Reply, Server};

/// Only a hang lasts this long.
const CEILING: Duration = Duration::from_secs(120);

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ran {
    fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "{}", self.stdout);
        serde_json::from_str(&self.stdout).expect("JSON")
    }
}

fn spawn(url: &str, flags: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_bloomgate"))
        .args(["attack", "--url", url])
        .args(flags.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary")
}

fn finish(mut child: Child) -> Ran {
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > CEILING {
            child.kill().unwrap();
            panic!("the run hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    Ran { code: status.code(), stdout, stderr }
}

fn attack(url: &str, flags: &str) -> Ran {
    finish(spawn(url, flags))
}

/// Answers ids up to 1,000 with 200, others with 404, `/guard` with the given document.
fn shop(guard: impl Fn() -> String + Send + Sync + 'static) -> Server {
    Server::start(move |path, _| {
        if path == "/guard" {
            return Reply::Answer(200, guard());
        }
        match path.rsplit('/').next().unwrap().parse::<u64>() {
            Ok(id) if id <= 1000 => Reply::Answer(200, format!("product {id}").repeat(500)),
            _ => Reply::Answer(404, "no such product".to_owned()),
        }
    })
}

fn plain_shop() -> Server {
    shop(String::new)
}

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
fn sequential_ids_leave_no_gap() {
    let server = plain_shop();
    let ran = attack(
        &server.url("/products/{id}"),
        "--requests 700 --profile sequential --start 5000 --connections 7 --json",
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.json()["guard"].is_null());
    let mut ids = server.ids();
    ids.sort_unstable();
    assert_eq!(ids, (5000..5700).collect::<Vec<u64>>());
}

#[test]
fn a_seed_repeats_a_run() {
    let ids = |flags: &str| {
        let server = plain_shop();
        let flags =
            format!("--requests 200 --legit-share 0.5 --legit-ids 1-1000 --connections 4 {flags}");
        assert_eq!(attack(&server.url("/products/{id}"), &flags).code, Some(0));
        let mut ids = server.ids();
        ids.sort_unstable();
        ids
    };
    let first = ids("--seed 11");
    assert_eq!(first.len(), 400);
    assert_eq!(first, ids("--seed 11"));
    assert_ne!(first, ids("--seed 12"));
    assert_ne!(ids(""), ids(""), "fresh seeds");
}

#[test]
fn the_id_may_be_in_the_query() {
    let server = Server::start(|_, _| Reply::Answer(404, String::new()));
    let ran =
        attack(&server.url("?a=b&id={id}&c=d"), "--requests 2 --profile sequential --start 8");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let paths: HashSet<String> = server.paths().into_iter().collect();
    assert_eq!(paths, HashSet::from(["/?a=b&id=8&c=d".into(), "/?a=b&id=9&c=d".into()]));
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
fn errors_instead_of_answers_fail_a_run_without_a_guard() {
    for (status, advice) in [(400, "see --ids"), (401, "add --header"), (301, "redirects")] {
        let server = Server::start(move |_, _| Reply::Answer(status, String::new()));
        let ran = attack(&server.url("/{id}"), "--requests 20");
        assert_eq!(ran.code, Some(1), "{}", ran.stdout);
        assert!(ran.stdout.contains("warning: nothing was measured"), "{}", ran.stdout);
        assert!(ran.stdout.contains(advice), "{}", ran.stdout);
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

#[test]
fn uuids_are_requested_once_each() {
    let server = Server::start(|_, _| Reply::Answer(404, String::new()));
    let flags = "--ids uuid --requests 300 --connections 4 --json";
    let ran = attack(&server.url("/users/{id}"), flags);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!((&ran.json()["ids"], &ran.json()["profile"]), (&"uuid".into(), &Value::Null));
    let paths: HashSet<String> = server.paths().into_iter().collect();
    assert_eq!(paths.len(), 300);
    for path in paths {
        let id = path.strip_prefix("/users/").unwrap();
        let dashes: Vec<usize> = id.match_indices('-').map(|(at, _)| at).collect();
        assert_eq!((id.len(), dashes), (36, vec![8, 13, 18, 23]), "{id}");
        assert_eq!(&id[14..15], "4", "{id} is of version 4");
        assert!(id.bytes().all(|byte| b"0123456789abcdef-".contains(&byte)), "{id}");
    }
}

#[test]
fn ids_of_files_are_percent_encoded_into_the_path() {
    let file = |content: &str| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, content.as_bytes()).unwrap();
        file
    };
    let (absent, existing) = (file("no/such id\nb\u{fc}cher\r\n\n"), file("here?\n"));
    let server = Server::start(|path, _| match path {
        "/shop/here%3F" => Reply::Answer(200, String::new()),
        _ => Reply::Answer(404, String::new()),
    });
    let flags = format!(
        "--ids {} --legit-ids {} --legit-share 0.5 --fail-on-refusal --json",
        absent.path().display(),
        existing.path().display()
    );
    let ran = attack(&server.url("/shop/{id}"), &flags);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let mut paths = server.paths();
    paths.sort_unstable();
    let expected = ["/shop/b%C3%BCcher", "/shop/here%3F", "/shop/here%3F", "/shop/no%2Fsuch%20id"];
    assert_eq!(paths, expected);
}

#[test]
fn headers_are_sent_with_every_request() {
    let server = Server::start(|path, _| match path {
        "/guard" => Reply::Answer(200, r#"{"counts":{}}"#.to_owned()),
        _ => Reply::Answer(404, String::new()),
    });
    let ran = finish(
        Command::new(env!("CARGO_BIN_EXE_bloomgate"))
            .args(["attack", "--requests", "5", "--url", &server.url("/{id}")])
            .args(["--guard-url", &server.url("/guard")])
            .args(["--header", "Authorization: Bearer a:b", "--header", "X-Tenant:  7"])
            .args(["--header", "Host: shop.example"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    assert_eq!(ran.code, Some(1), "this guard counts nothing");
    assert!(!ran.stdout.contains("Bearer"), "{}", ran.stdout);
    let requests = server.requests();
    assert_eq!(requests.len(), 7);
    for (path, headers) in requests {
        let header = |name: &str| headers.get(name).unwrap().to_str().unwrap().to_owned();
        assert_eq!(
            (header("authorization"), header("x-tenant")),
            ("Bearer a:b".into(), "7".into())
        );
        let own = if path == "/guard" { server.address.to_string() } else { "shop.example".into() };
        assert_eq!(header("host"), own);
    }
}

#[test]
fn wrong_targets_are_refused_in_one_line() {
    let server = plain_shop();
    let (port, url) = (server.address.port(), server.url("/{id}"));
    for (target, flags, says) in [
        (format!("http://127.0.0.1.evil.com:{port}/{{id}}"), "", "--i-own-this-target"),
        (format!("http://192.0.2.1:{port}/{{id}}"), "", "--i-own-this-target"),
        (format!("http://0x7f.1:{port}/{{id}}"), "", "--i-own-this-target"),
        (format!("http://0.0.0.0:{port}/{{id}}"), "", "--i-own-this-target"),
        (format!("http://127.0.0.1@evil.com:{port}/{{id}}"), "", "must be a host"),
        (format!("https://127.0.0.1:{port}/{{id}}"), "", "https"),
        (server.url("/products"), "", "{id}"),
        (url.clone(), "--guard-url http://192.0.2.1/guard", "--guard-url: "),
        (url.clone(), "--legit-share 0.1", "--legit-ids"),
        (url.clone(), "--requests 1.5", "'--requests <N>': 1.5 is not a whole number"),
        (url.clone(), "--header Authorization", "give 'Name: value'"),
        (url.clone(), "--header Content-Length:5", "content-length is set by the connection"),
        (url.clone(), "--ids no-such-file", "--ids: can't read the file no-such-file"),
        (url, "--legit-share 0.1 --legit-ids 9-1", "--legit-ids"),
    ] {
        let ran = attack(&target, flags);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{target} {flags}");
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
        assert!(ran.stderr.contains(says), "{target} {flags}: {}", ran.stderr);
    }
    assert!(server.paths().is_empty());
}

#[test]
fn an_unreachable_server_is_reported_before_any_traffic() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ran = attack(&format!("http://{address}/{{id}}"), "");
    assert_eq!((ran.code, ran.stderr.lines().count()), (Some(2), 1));
    assert!(ran.stderr.starts_with("error: --url: nothing accepts connections"), "{}", ran.stderr);
}

#[test]
fn localhost_is_resolved() {
    let server = plain_shop();
    let url = format!("http://localhost:{}/{{id}}", server.address.port());
    let ran = attack(&url, "--requests 5 --json");
    assert_eq!((ran.code, server.paths().len()), (Some(0), 5), "{}", ran.stderr);
}
