//! The server's cost of a refused and of a passing request, against handlers without a guard.
//!
//! `cargo bench -p bloomgate-tests --bench refusal`
//!
//! A refused request is compared with a bare handler that answers the same bytes, a passing one
//! with the same handler without the layer. Every variant is a process of its own; they are attacked
//! in turn, round after round, by the attack tester, and judged by the processor time that the
//! operating system charges to the process. `ROUNDS` and `REQUESTS` in the environment change how
//! long it takes.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that can't measure ends at once, with a message"
)]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::process::Command;
use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt as _;
use bloomgate::http_guard::{CheckOnly, CustomNotFound, GuardLayer, PathParam};
use bloomgate::{Gate, Guard, Guarded, loader, path_param, warm_up};
use testbed::Program;

/// Ids that exist, from 1; at least one for each request of a round.
const IDS: i64 = 1_000_000;

/// A server to measure.
struct Variant {
    name: &'static str,
    what: &'static str,
}

/// Variants that are asked for the same ids, the baseline first, with the target of a ratio.
struct Group {
    title: &'static str,
    exist: bool,
    baseline: &'static str,
    variants: &'static [Variant],
    target: &'static str,
}

const GROUPS: [Group; 2] = [
    Group {
        title: "refused",
        exist: false,
        baseline: "bare",
        variants: &[
            Variant { name: "bare", what: "a handler that answers 404" },
            Variant { name: "from_fn", what: "the same behind a from_fn that does nothing" },
            Variant { name: "gate", what: "the guard, gate only" },
            Variant { name: "read", what: "the guard, reading through" },
        ],
        target: "gate only at most 1.05 × bare",
    },
    Group {
        title: "passing",
        exist: true,
        baseline: "handler",
        variants: &[
            Variant { name: "handler", what: "a handler that answers 200" },
            Variant {
                name: "handler_from_fn",
                what: "the same behind a from_fn that does nothing",
            },
            Variant { name: "handler_gate", what: "the same behind the guard, gate only" },
        ],
        target: "gate only at most 1.03 × the unguarded handler",
    },
];

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|arg| arg == "--serve") {
        let variant = args.get(at + 1).expect("--serve VARIANT");
        tokio::runtime::Runtime::new().expect("a runtime").block_on(serve(variant));
        return;
    }
    let requests = number("REQUESTS", 150_000);
    assert!(requests <= IDS.unsigned_abs(), "REQUESTS={requests}: at most {IDS} ids exist");
    measure(number("ROUNDS", 7), requests);
}

fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text}: not a number")),
        Err(_) => default,
    }
}

fn not_found() -> Response {
    let kind = [(header::CONTENT_TYPE, "application/problem+json")];
    let body =
        r#"{"type":"about:blank","title":"Not Found","status":404,"detail":"no such product"}"#;
    (StatusCode::NOT_FOUND, kind, body).into_response()
}

async fn guard() -> Guard<i64, String> {
    let guard = Guard::builder("bench")
        .gate(Gate::bloom().items(IDS.unsigned_abs()))
        .source(warm_up::Keys::new(1..=IDS))
        .loader(loader::from_fn(|_: i64| async { Ok::<_, Infallible>(None) }))
        .build()
        .await
        .expect("a guard");
    while !guard.is_ready() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    guard
}

async fn gate_layer()
-> GuardLayer<i64, String, PathParam, CheckOnly, CustomNotFound<axum::body::Body>> {
    guard().await.gate_layer(path_param("id")).not_found(not_found)
}

async fn serve(variant: &str) {
    let bare = || get(|Path(_): Path<i64>| async { not_found() });
    let handler = || get(|Path(id): Path<i64>| async move { format!("row {id}") });
    let pass = || from_fn(|request, next: Next| async move { next.run(request).await });
    let routes = match variant {
        "bare" => bare(),
        "from_fn" => bare().route_layer(pass()),
        "gate" => bare().route_layer(gate_layer().await),
        "read" => get(|row: Guarded<String>| async move { row.to_string() })
            .route_layer(guard().await.layer(path_param("id")).not_found(not_found)),
        "handler" => handler(),
        "handler_from_fn" => handler().route_layer(pass()),
        "handler_gate" => handler().route_layer(gate_layer().await),
        other => panic!("no variant {other:?}"),
    };
    let app = Router::new().route("/products/{id}", routes);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("listening on http://{}", listener.local_addr().expect("an address"));
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).expect("TCP_NODELAY"));
    axum::serve(listener, app).await.expect("serving");
}

struct Server {
    program: Program,
    url: String,
}

fn start(variant: &str) -> Server {
    let this = std::env::current_exe().expect("this program");
    let program = Program::start(this, &["--serve", variant], &[]);
    let line = program.wait_for_line("listening on ", Duration::from_secs(30)).expect("a server");
    let url = format!("{}/products/{{id}}", line.trim_start_matches("listening on ").trim());
    Server { program, url }
}

/// Microseconds of processor time a request: all, and those in user mode.
fn attack(tool: &std::path::Path, server: &Server, exist: bool, requests: u64) -> (f64, f64) {
    let before = server.program.cpu_time();
    let ids: &[&str] =
        if exist { &["--profile", "sequential", "--start", "1"] } else { &["--profile", "random"] };
    let output = Command::new(tool)
        .args(["attack", "--json", "--connections", "64", "--threads", "1"])
        .args(["--requests", &requests.to_string(), "--url", &server.url])
        .args(ids)
        .output()
        .expect("the attack tester");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
    let status = if exist { "200" } else { "404" };
    assert_eq!(report["attack"]["statuses"][status], requests, "all are answered {status}");
    let after = server.program.cpu_time();
    let (user, system) = (after.0 - before.0, after.1 - before.1);
    let each = 1e6 / requests as f64;
    ((user + system) * each, user * each)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn measure(rounds: u64, requests: u64) {
    let tool = testbed::workspace_binary("bloomgate-cli", "bloomgate");
    let servers: Vec<(bool, &Variant, Server)> = GROUPS
        .iter()
        .flat_map(|group| group.variants.iter().map(|variant| (group.exist, variant)))
        .map(|(exist, variant)| (exist, variant, start(variant.name)))
        .collect();
    for (exist, _, server) in &servers {
        attack(&tool, server, *exist, requests / 5);
    }
    let mut all: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        for (exist, variant, server) in &servers {
            let cost = attack(&tool, server, *exist, requests);
            all.entry(variant.name).or_default().push(cost);
        }
    }
    println!();
    println!("Processor time of the server for one request; {rounds} interleaved rounds of");
    println!("{requests} ids over 64 connections; medians of µs, and of the rounds' ratios.");
    for group in &GROUPS {
        print_group(group, &all);
    }
}

fn print_group(group: &Group, all: &BTreeMap<&str, Vec<(f64, f64)>>) {
    println!();
    println!(
        "| {} | CPU µs | ÷ {} | user µs | ÷ {} |",
        group.title, group.baseline, group.baseline
    );
    println!("|---|---|---|---|---|");
    let baseline = &all[group.baseline];
    for variant in group.variants {
        let rounds = &all[variant.name];
        let cpu = median(rounds.iter().map(|round| round.0).collect());
        let user = median(rounds.iter().map(|round| round.1).collect());
        let ratio = |pick: fn(&(f64, f64)) -> f64| {
            median(rounds.iter().zip(baseline).map(|(a, b)| pick(a) / pick(b)).collect())
        };
        let (cpu_ratio, user_ratio) = (ratio(|round| round.0), ratio(|round| round.1));
        println!("| {} | {cpu:.2} | {cpu_ratio:.3} | {user:.2} | {user_ratio:.3} |", variant.what);
    }
    println!();
    println!("Target: {}.", group.target);
}
