//! The time that a joining member of a fleet takes for a copy of a gate of ten million ids through
//! Redis, beside that of fetching as many bytes from the same Redis with `GETRANGE`.
//!
//! The joiner's time is from `build` until its gate refuses: joining is in it. Rounds alternate;
//! printed are the medians.

#![expect(clippy::expect_used, reason = "what goes wrong ends the benchmark")]

use std::time::{Duration, Instant};

use bloomgate::backplane::FleetSettings;
use bloomgate::telemetry::GateState;
use bloomgate::{Gate, Guard, RedisStore, Secret, warm_up};
use futures_util::stream;
use testbed::RedisServer;

const IDS: i64 = 10_000_000;
const ROUNDS: usize = 9;
const CHUNK: usize = 1 << 20;

/// A member whose source has these ids.
async fn member(redis: &RedisServer, ids: i64) -> Guard<i64> {
    let source = move || stream::iter((0..ids).map(Ok::<_, std::convert::Infallible>));
    Guard::gate_only("copy")
        .gate(Gate::bloom().items(IDS as u64))
        .source(warm_up::from_stream(source))
        .store(RedisStore::open(&redis.url()).expect("a URL"))
        .fleet(FleetSettings::default())
        .secret(Secret::new(b"the secret of all members").expect("a secret"))
        .write_window(Duration::from_secs(6))
        .store_timeout(Duration::from_millis(500))
        .build()
        .await
        .expect("a guard")
}

async fn until_closed(guard: &Guard<i64>) {
    while guard.check(&-1) != bloomgate::Verdict::Absent {
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[tokio::main]
async fn main() {
    let redis = RedisServer::start();
    let first = member(&redis, IDS).await;
    while first.status().gate.state != GateState::Closed {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let bytes = first.status().gate.bytes as usize;
    let client = redis::Client::open(redis.url()).expect("a URL");
    let mut connection = client.get_multiplexed_async_connection().await.expect("a connection");
    let noise: Vec<u8> = (0..bytes).map(|at| (at * 31 + at / 7) as u8).collect();
    let () = redis::cmd("SET")
        .arg("blob")
        .arg(noise)
        .query_async(&mut connection)
        .await
        .expect("a blob");

    let (mut copied, mut fetched) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let began = Instant::now();
        // It would scan nothing, and refuse what exists: only a copy passes the check below.
        let joiner = member(&redis, 0).await;
        until_closed(&joiner).await;
        copied.push(began.elapsed().as_secs_f64() * 1e3);
        assert_eq!(joiner.status().fleet.map(|fleet| fleet.copies_taken), Some(1), "no copy");
        joiner.shutdown(Duration::ZERO).await;

        let began = Instant::now();
        let mut received = 0;
        while received < bytes {
            let chunk: bytes::Bytes = redis::cmd("GETRANGE")
                .arg("blob")
                .arg(received)
                .arg(received + CHUNK - 1)
                .query_async(&mut connection)
                .await
                .expect("a chunk");
            received += chunk.len();
        }
        fetched.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let (copied, fetched) = (median(&mut copied), median(&mut fetched));
    println!("Gate of {IDS} ids, {:.1} MB; medians of {ROUNDS} rounds:\n", bytes as f64 / 1e6);
    println!("| | ms |\n|---|---|");
    println!("| a member joins and copies the gate | {copied:.1} |");
    println!("| the same bytes with GETRANGE | {fetched:.1} |");
    println!("| ratio | {:.2} |", copied / fetched);
}
