//! Copies of a complete gate between guards on one real Redis (rule C22).

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bloomgate_filter::Secret;
use futures_util::stream;
use testbed::RedisServer;

use super::fake_table::{FakeTable, Row};
use crate::answer::{OpenReason, Verdict};
use crate::backplane::FleetSettings;
use crate::gate::Gate;
use crate::guard::{Guard, GuardBuilder};
use crate::shared_cache::RedisStore;
use crate::telemetry::GateState;
use crate::{loader, warm_up};

const ROWS: i64 = 20_000;
/// An id that never exists.
const ABSENT: i64 = -1;
const WINDOW: Duration = Duration::from_secs(3);
/// The longest wait for what should come soon.
const CEILING: Duration = Duration::from_secs(60);

fn secret(text: &[u8]) -> Secret {
    Secret::new(text).unwrap()
}

fn common() -> Secret {
    secret(b"the secret of all members")
}

/// Of a given size, so that nothing is counted before a scan.
fn sized() -> Gate {
    Gate::bloom().items(50_000)
}

/// A server, a table, and how often the table was scanned.
struct Fixture {
    redis: RedisServer,
    table: FakeTable,
    scans: Arc<AtomicUsize>,
    /// Scans begin and come to no end.
    hangs: Arc<AtomicBool>,
}

impl Fixture {
    fn new() -> Self {
        let table = FakeTable::with(0..ROWS);
        Self { redis: RedisServer::start(), table, scans: Arc::default(), hangs: Arc::default() }
    }

    fn describe(&self, label: &str) -> GuardBuilder<i64, Row> {
        let (scanned, loaded) = (self.table.clone(), self.table.clone());
        let (scans, hangs) = (Arc::clone(&self.scans), Arc::clone(&self.hangs));
        let source = move || {
            scans.fetch_add(1, Ordering::SeqCst);
            let hangs = hangs.load(Ordering::SeqCst);
            let ids = if hangs { Vec::new() } else { scanned.ids() };
            let ids = stream::iter(ids.into_iter().map(Ok::<_, Infallible>));
            let rest = stream::poll_fn(move |_| match hangs {
                true => std::task::Poll::Pending,
                false => std::task::Poll::Ready(None),
            });
            futures_util::StreamExt::chain(ids, rest)
        };
        let load = move |id: i64| {
            let row = loaded.get(id);
            async move { Ok::<_, Infallible>(row) }
        };
        let settings = FleetSettings::default()
            .lease(Duration::from_millis(900))
            .renew_every(Duration::from_millis(200))
            .fence_after(Duration::from_millis(450))
            .label(label);
        Guard::builder("copies")
            .source(warm_up::from_stream(source))
            .loader(loader::from_fn(load))
            .store(RedisStore::open(&self.redis.url()).unwrap())
            .fleet(settings)
            .gate(sized())
            .secret(common())
            .write_window(WINDOW)
            .store_timeout(Duration::from_millis(250))
    }

    /// A guard that has scanned the table.
    async fn first(&self) -> Guard<i64, Row> {
        let first = self.describe("first").build().await.unwrap();
        until_closed(&first).await;
        assert_eq!(self.scans.load(Ordering::SeqCst), 1);
        first
    }
}

async fn until_closed(guard: &Guard<i64, Row>) {
    let end = tokio::time::Instant::now() + CEILING;
    while guard.status().gate.state != GateState::Closed {
        let gate = guard.status().gate;
        assert!(tokio::time::Instant::now() < end, "it stays open: {gate:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn assert_refuses_none_that_exists(guard: &Guard<i64, Row>, table: &FakeTable) {
    for id in table.ids() {
        assert_ne!(guard.check(&id), Verdict::Absent, "{id}");
    }
    assert_eq!(guard.check(&ABSENT), Verdict::Absent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_joins_copies_the_gate_and_does_not_ask_the_source() {
    for gate in [sized(), Gate::bitmap(), Gate::exact()] {
        let fixture = Fixture::new();
        let first = fixture.describe("first").gate(gate.clone()).build().await.unwrap();
        until_closed(&first).await;
        fixture.hangs.store(true, Ordering::SeqCst);
        let second = fixture.describe("second").gate(gate).build().await.unwrap();
        until_closed(&second).await;
        assert_refuses_none_that_exists(&second, &fixture.table);
        assert_eq!(fixture.scans.load(Ordering::SeqCst), 1);
        assert_eq!(second.status().fleet.unwrap().copies_taken, 1);
        assert_eq!(first.status().fleet.unwrap().copies_given, 1);
        // What is left of the copy is that it was claimed, for a minute.
        assert_eq!(fixture.redis.command(&["DBSIZE"]), "3", "table, log and claim");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_that_is_written_while_members_copy_is_refused_by_them() {
    let fixture = Fixture::new();
    let first = fixture.first().await;
    let over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4)
        .map(|number| {
            let (guard, table) = (first.clone(), fixture.table.clone());
            let over = Arc::clone(&over);
            tokio::spawn(async move {
                let mut written = Vec::new();
                while !over.load(Ordering::SeqCst) {
                    let id = ROWS + number + 4 * written.len() as i64;
                    let table = table.clone();
                    let run = async move { Ok::<_, Infallible>(table.commit(id)) };
                    guard.write(id, run).await.unwrap();
                    written.push(id);
                }
                written
            })
        })
        .collect();
    let mut joined = Vec::new();
    for number in 0..6 {
        let guard = fixture.describe(&format!("joiner {number}")).build().await.unwrap();
        until_closed(&guard).await;
        joined.push(guard);
    }
    over.store(true, Ordering::SeqCst);
    let mut written = 0;
    for writer in writers {
        written += writer.await.unwrap().len();
    }
    assert!(written > 50, "{written} keys were written meanwhile");
    assert_eq!(fixture.scans.load(Ordering::SeqCst), 1, "the joiners have copies");
    for guard in &joined {
        assert_refuses_none_that_exists(guard, &fixture.table);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_with_another_secret_is_refused_a_copy_says_so_and_scans() {
    let fixture = Fixture::new();
    let _first = fixture.first().await;
    let other = fixture.describe("other").secret(secret(b"quite another secret"));
    let other = other.build().await.unwrap();
    until_closed(&other).await;
    assert_eq!(fixture.scans.load(Ordering::SeqCst), 2);
    assert_refuses_none_that_exists(&other, &fixture.table);
    let status = other.status().fleet.unwrap();
    assert_eq!((status.copies_taken, status.last_copy_refusal.is_some()), (0, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_of_other_settings_is_not_copied() {
    let fixture = Fixture::new();
    let _first = fixture.first().await;
    for (scans, gate) in [Gate::bitmap(), Gate::bloom().items(60_000)].into_iter().enumerate() {
        let other = fixture.describe("other").gate(gate).build().await.unwrap();
        until_closed(&other).await;
        assert_eq!(fixture.scans.load(Ordering::SeqCst), 2 + scans);
        assert_eq!(other.status().fleet.unwrap().copies_taken, 0);
    }
}

// What was written behind the guards' back is in no member's gate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuild_that_is_asked_for_reads_the_source() {
    let fixture = Fixture::new();
    let _first = fixture.first().await;
    let second = fixture.describe("second").build().await.unwrap();
    until_closed(&second).await;
    fixture.table.commit(ROWS + 7);
    assert_eq!(second.check(&(ROWS + 7)), Verdict::Absent);
    second.rebuild().await.unwrap();
    assert_eq!(fixture.scans.load(Ordering::SeqCst), 2);
    assert_refuses_none_that_exists(&second, &fixture.table);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_is_cut_off_is_not_used() {
    let fixture = Fixture::new();
    let _first = fixture.first().await;
    // Beside every copy's first chunk stands an end that comes too early.
    let url = fixture.redis.url();
    let over = Arc::new(AtomicBool::new(false));
    let spoiled = {
        let over = Arc::clone(&over);
        tokio::task::spawn_blocking(move || {
            let client = redis::Client::open(url).unwrap();
            let mut connection = client.get_connection().unwrap();
            let mut spoiled = 0;
            while !over.load(Ordering::SeqCst) {
                let claims: Vec<String> = redis::cmd("KEYS")
                    .arg("bloomgate:{copies}:copy:*:claim")
                    .query(&mut connection)
                    .unwrap();
                for claim in claims {
                    let list = claim.trim_end_matches(":claim");
                    let () =
                        redis::cmd("DEL").arg(&claim).arg(list).query(&mut connection).unwrap();
                    let () = redis::cmd("RPUSH").arg(list).arg("").query(&mut connection).unwrap();
                    spoiled += 1;
                }
            }
            spoiled
        })
    };
    for number in 0..5 {
        let joined = fixture.describe(&format!("joiner {number}")).build().await.unwrap();
        until_closed(&joined).await;
        assert_refuses_none_that_exists(&joined, &fixture.table);
    }
    over.store(true, Ordering::SeqCst);
    assert!(spoiled.await.unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_could_not_refuse_itself_gives_nothing() {
    let fixture = Fixture::new();
    fixture.hangs.store(true, Ordering::SeqCst);
    let warming = fixture.describe("warming").build().await.unwrap();
    let end = tokio::time::Instant::now() + CEILING;
    while fixture.scans.load(Ordering::SeqCst) == 0 {
        assert!(tokio::time::Instant::now() < end);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    fixture.hangs.store(false, Ordering::SeqCst);
    let second = fixture.describe("second").build().await.unwrap();
    until_closed(&second).await;
    assert_eq!(fixture.scans.load(Ordering::SeqCst), 2);
    assert_refuses_none_that_exists(&second, &fixture.table);
    assert_eq!(warming.check(&ABSENT), Verdict::Unknown(OpenReason::Warming));
    assert_eq!(warming.status().fleet.unwrap().copies_given, 0);
}
