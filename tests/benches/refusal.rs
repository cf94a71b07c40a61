//! What a refused request costs the server, against a bare handler that answers the same bytes.
//!
//! `cargo bench -p bloomgate-tests --bench refusal`
//!
//! Every variant is a process of its own; they are attacked in turn, round after round, by the
//! attack tester with ids that don't exist, and judged by the processor time that the operating
//! system charges to the process. `ROUNDS` and `REQUESTS` in the environment change how long it
//! takes.

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
use bloomgate::{Gate, Guard, Guarded, loader, path_param, warm_up};
use testbed::Program;

/// Ids that exist, and ids that the gate is sized for.
const IDS: i64 = 100_000;

/// The variants, the baseline first.
const VARIANTS: [(&str, &str); 4] = [
    ("bare", "a handler that answers 404"),
    ("from_fn", "the same behind a from_fn that does nothing"),
    ("gate", "the guard, gate only"),
    ("read", "the guard, reading through"),
];

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|arg| arg == "--serve") {
        let variant = args.get(at + 1).expect("--serve VARIANT");
        tokio::runtime::Runtime::new().expect("a runtime").block_on(serve(variant));
        return;
    }
    measure(number("ROUNDS", 7), number("REQUESTS", 150_000));
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

async fn serve(variant: &str) {
    let bare = || get(|Path(_): Path<i64>| async { not_found() });
    let app = Router::new();
    let app = match variant {
        "bare" => app.route("/products/{id}", bare()),
        "from_fn" => app
            .route("/products/{id}", bare())
            .route_layer(from_fn(|request, next: Next| async move { next.run(request).await })),
        "gate" => app
            .route("/products/{id}", bare())
            .route_layer(guard().await.layer(path_param("id")).gate_only().not_found(not_found)),
        "read" => app
            .route(
                "/products/{id}",
                get(|Guarded(v): Guarded<String>| async move { v.to_string() }),
            )
            .route_layer(guard().await.layer(path_param("id")).not_found(not_found)),
        other => panic!("no variant {other:?}"),
    };
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
fn attack(tool: &std::path::Path, server: &Server, requests: u64) -> (f64, f64) {
    let before = server.program.cpu_time();
    let output = Command::new(tool)
        .args(["attack", "--json", "--connections", "64", "--threads", "1"])
        .args(["--requests", &requests.to_string(), "--url", &server.url])
        .output()
        .expect("the attack tester");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report["attack"]["statuses"]["404"], requests, "every request was answered 404");
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
    let servers: Vec<Server> = VARIANTS.iter().map(|(name, _)| start(name)).collect();
    for server in &servers {
        attack(&tool, server, requests / 5);
    }
    let mut all: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        for (index, server) in servers.iter().enumerate() {
            all.entry(index).or_default().push(attack(&tool, server, requests));
        }
    }
    println!();
    println!(
        "Processor time of the server for one refused request; {rounds} interleaved rounds of"
    );
    println!(
        "{requests} absent ids over 64 connections; medians of µs, and of the rounds' ratios."
    );
    println!();
    println!("| variant | CPU µs | ÷ bare | user µs | ÷ bare |");
    println!("|---|---|---|---|---|");
    let bare = all[&0].clone();
    for (index, (_, what)) in VARIANTS.iter().enumerate() {
        let cpu = median(all[&index].iter().map(|round| round.0).collect());
        let user = median(all[&index].iter().map(|round| round.1).collect());
        let ratio = |pick: fn(&(f64, f64)) -> f64| {
            median(all[&index].iter().zip(&bare).map(|(a, b)| pick(a) / pick(b)).collect())
        };
        let (cpu_ratio, user_ratio) = (ratio(|round| round.0), ratio(|round| round.1));
        println!("| {what} | {cpu:.2} | {cpu_ratio:.3} | {user:.2} | {user_ratio:.3} |");
    }
}
