//! The loads and the costs of an attack with absent ids, with and without the guard.
//!
//! `cargo bench -p bloomgate-tests --bench penetration`
//!
//! Starts the example service on SQLite, and on PostgreSQL with Redis, with 100,000 products and a
//! gate of that capacity; attacks it with distinct random ids; then reads 2,000 existing products.
//! The environment variable `REQUESTS` changes the number of attack requests.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that fails ends at once, with a message"
)]

use std::process::Command;
use std::time::Duration;

use testbed::{PostgresServer, Program, RedisServer, TempFolder, net};

const PRODUCTS: u64 = 100_000;
const EXISTING_ASKED: u64 = 2_000;

/// A configuration of the service.
struct Setup {
    what: &'static str,
    servers: Option<(PostgresServer, RedisServer)>,
    guarded: bool,
}

fn main() {
    let requests: u64 = match std::env::var("REQUESTS") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("REQUESTS={text}: not a number")),
        Err(_) => 500_000,
    };
    println!("{requests} distinct absent ids over 64 connections, p = 0.001, {PRODUCTS} products,");
    println!(
        "--capacity {PRODUCTS}; then {EXISTING_ASKED} existing ids. Client, service and servers"
    );
    println!("share the machine. sqlx pools with test_before_acquire off.");
    println!();
    println!(
        "| service | requests/s | p50 ms | p99 ms | CPU of the service, µs/request | absent loads \
         per 1,000 | existing ids refused |"
    );
    println!("|---|---|---|---|---|---|---|");
    for postgres in [false, true] {
        for guarded in [true, false] {
            let what = match (postgres, guarded) {
                (false, true) => "SQLite, guarded",
                (false, false) => "SQLite, unguarded",
                (true, true) => "PostgreSQL + Redis, guarded",
                (true, false) => "PostgreSQL, unguarded",
            };
            let servers = postgres.then(|| (PostgresServer::start(), RedisServer::start()));
            run(&Setup { what, servers, guarded }, requests);
        }
    }
}

fn start(setup: &Setup, folder: &TempFolder) -> (Program, String) {
    let mut args = vec!["--listen".to_owned(), "127.0.0.1:0".to_owned()];
    args.extend(["--data-dir".to_owned(), folder.path().join("data").display().to_string()]);
    args.extend(["--capacity".to_owned(), PRODUCTS.to_string()]);
    args.extend(["--seed".to_owned(), PRODUCTS.to_string()]);
    if let Some((postgres, redis)) = &setup.servers {
        args.extend(["--database-url".to_owned(), postgres.url()]);
        args.extend(["--redis-url".to_owned(), redis.url(), "--single-instance".to_owned()]);
    }
    if !setup.guarded {
        args.push("--no-guard".to_owned());
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let binary = testbed::workspace_binary("product-detail", "product-detail");
    let program = Program::start(binary, &args, &[]);
    let line = program.wait_for_line("listening on ", Duration::from_secs(120));
    let line = line.unwrap_or_else(|| panic!("the service didn't start: {}", program.stderr()));
    let url = line.trim_start_matches("listening on ").trim().to_owned();
    for _ in 0..600 {
        // Ready, and with a gate that refuses: a service may be ready with an open one.
        let is_ready = net::get(&format!("{url}/readyz")).status == 200;
        if is_ready && (!setup.guarded || gate_is_closed(&url)) {
            return (program, url);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the service isn't ready: {}", program.stderr());
}

fn gate_is_closed(url: &str) -> bool {
    let status = net::get(&format!("{url}/guard")).body;
    let status: serde_json::Value = serde_json::from_slice(&status).expect("a status document");
    status["gate"]["state"] == "closed"
}

fn run(setup: &Setup, requests: u64) {
    let folder = testbed::temp_folder();
    let (program, url) = start(setup, &folder);
    let tool = testbed::workspace_binary("bloomgate-cli", "bloomgate");
    let before = program.cpu_time();
    let output = Command::new(tool)
        .args(["attack", "--json", "--connections", "64", "--requests", &requests.to_string()])
        .args(["--url", &format!("{url}/products/{{id}}"), "--guard-url", &format!("{url}/guard")])
        .output()
        .expect("the attack tester");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let after = program.cpu_time();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
    let cpu = (after.0 + after.1 - before.0 - before.1) * 1e6 / requests as f64;
    let number = |pointer: &str| report.pointer(pointer).and_then(serde_json::Value::as_f64);
    let number = |pointer: &str| number(pointer).unwrap_or(f64::NAN);

    let step = PRODUCTS / EXISTING_ASKED;
    let refused = (1..=EXISTING_ASKED)
        .filter(|n| net::get(&format!("{url}/products/{}", n * step)).status != 200)
        .count();
    println!(
        "| {} | {:.0} | {:.2} | {:.2} | {cpu:.1} | {:.2} | {refused} of {EXISTING_ASKED} |",
        setup.what,
        number("/requests_per_second"),
        number("/attack/latency_us/p50") / 1e3,
        number("/attack/latency_us/p99") / 1e3,
        number("/guard/absent_loads_per_1000"),
    );
    program.terminate();
}
