//! The cost of a write's Begin in a fleet: for one instance and for three, beside one round trip to
//! the same Redis; and the steps of the log that a thousand concurrent writes take.
//!
//! Rounds alternate; printed are the medians.

#![expect(clippy::expect_used, reason = "what goes wrong ends the benchmark")]

use std::future::Future;
use std::time::{Duration, Instant};

use bloomgate::backplane::FleetSettings;
use bloomgate::ports::{SlotKey, SlotOp};
use bloomgate::shared_cache::slot_prefix;
use bloomgate::telemetry::GateState;
use bloomgate::{Guard, RedisStore, Store, warm_up};
use futures_util::future::join_all;
use testbed::RedisServer;

const ROUNDS: i64 = 400;
const CONCURRENT: i64 = 1_000;

/// A member of the fleet of this name.
async fn member(redis: &RedisServer, name: &str) -> Guard<i64> {
    let store = RedisStore::open(&redis.url()).expect("a URL");
    Guard::gate_only(name)
        .source(warm_up::Keys::new([1_i64]))
        .store(store)
        .fleet(FleetSettings::default())
        .write_window(Duration::from_secs(6))
        .store_timeout(Duration::from_millis(500))
        .build()
        .await
        .expect("a guard")
}

async fn until_closed(guards: &[Guard<i64>]) {
    while guards.iter().any(|guard| guard.status().gate.state != GateState::Closed) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn timed<T>(work: impl Future<Output = T>) -> (f64, T) {
    let began = Instant::now();
    let done = work.await;
    (began.elapsed().as_secs_f64() * 1e6, done)
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share) as usize]
}

/// How many scripts and reads of streams the server has run.
fn steps(redis: &RedisServer) -> u64 {
    let statistics = redis.command(&["INFO", "commandstats"]);
    let calls = |name: &str| {
        let line = statistics.lines().find_map(|line| {
            line.strip_prefix(&format!("cmdstat_{name}:calls="))?.split(',').next()
        });
        line.map_or(0, |calls| calls.parse().unwrap_or(0))
    };
    calls("evalsha") + calls("eval") + calls("xread")
}

#[tokio::main]
async fn main() {
    let redis = RedisServer::start();
    let one = [member(&redis, "one").await];
    let mut three = Vec::new();
    for _ in 0..3 {
        three.push(member(&redis, "three").await);
    }
    until_closed(&one).await;
    until_closed(&three).await;

    let store = RedisStore::open(&redis.url()).expect("a URL");
    let slot = SlotKey::new(slot_prefix("bench", "bench"), 1, bloomgate::key::KeyBytes::of(&1_i64));
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for id in 0..ROUNDS {
        let (micros, reply) = timed(store.call(&slot, SlotOp::Get)).await;
        let _ = reply.expect("a reply");
        times[0].push(micros);
        for (guards, at) in [(&one[..], 1), (&three[..], 2)] {
            let (micros, write) = timed(guards[0].begin(id)).await;
            write.expect("a write").end().await.expect("an end");
            times[at].push(micros);
        }
    }
    let round_trip = quantile(&mut times[0].clone(), 0.5);
    println!("| {ROUNDS} alternating rounds | p50 µs | p99 µs | p50 ÷ a round trip |");
    println!("|---|---|---|---|");
    let names = ["one round trip (GET)", "Begin, fleet of one", "Begin, fleet of three"];
    for (name, times) in names.into_iter().zip(&mut times) {
        let (p50, p99) = (quantile(times, 0.5), quantile(times, 0.99));
        println!("| {name} | {p50:.0} | {p99:.0} | {:.2} |", p50 / round_trip);
    }

    let before = steps(&redis);
    let (micros, writes) =
        timed(join_all((0..CONCURRENT).map(|id| three[0].begin(10_000 + id)))).await;
    // Each write puts its intent by a script, which is not of the log.
    let steps = (steps(&redis) - before).saturating_sub(CONCURRENT as u64);
    println!();
    println!(
        "{CONCURRENT} concurrent writes: begun in {:.0} ms, {:.3} steps of the log each.",
        micros / 1e3,
        steps as f64 / CONCURRENT as f64
    );
    for write in writes {
        write.expect("a write").end().await.expect("an end");
    }
    println!("Targets: at most 5 round trips in a fleet of three, at most 0.3 steps each.");
}
