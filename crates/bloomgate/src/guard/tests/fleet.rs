//! Three guards on one real Redis: what one has written, all serve, whatever happens to the server.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream;
use parking_lot::Mutex;
use rand::{RngExt as _, SeedableRng as _};
use testbed::RedisServer;
use testbed::net::{Direction, Flow, Proxy};

use super::fake_table::{FakeTable, Row};
use super::within;
use crate::answer::{Answer, Tier, Verdict};
use crate::backplane::FleetSettings;
use crate::guard::Guard;
use crate::shared_cache::RedisStore;
use crate::telemetry::GateState;
use crate::{loader, warm_up};

const MEMBERS: usize = 3;
/// Few, so that members write the same ones.
const IDS: i64 = 40;
/// An id that never exists.
const ABSENT: i64 = -1;
const WINDOW: Duration = Duration::from_secs(2);
const WRITERS: usize = 4;
/// The longest wait for what should come soon.
const CEILING: Duration = Duration::from_secs(30);

/// Short, so that a test sees leases end.
fn settings(number: usize) -> FleetSettings {
    FleetSettings::default()
        .lease(Duration::from_millis(600))
        .renew_every(Duration::from_millis(150))
        .fence_after(Duration::from_millis(300))
        .label(format!("member {number}"))
}

/// A member that reaches Redis at this port.
async fn member(port: u16, table: &FakeTable, number: usize) -> Guard<i64, Row> {
    let (scanned, loaded) = (table.clone(), table.clone());
    let source = move || {
        let ids = scanned.ids().into_iter().map(Ok::<_, Infallible>);
        stream::iter(ids.collect::<Vec<_>>())
    };
    let load = move |id: i64| {
        let row = loaded.get(id);
        async move {
            // What a slow query has read may be outdated when it comes.
            tokio::task::yield_now().await;
            Ok::<_, Infallible>(row)
        }
    };
    Guard::builder("fleet")
        .source(warm_up::from_stream(source))
        .loader(loader::from_fn(load))
        .store(RedisStore::open(&format!("redis://127.0.0.1:{port}")).unwrap())
        .fleet(settings(number))
        // So that they copy gates from one another.
        .secret(bloomgate_filter::Secret::new(b"the secret of all members").unwrap())
        .write_window(WINDOW)
        .store_timeout(Duration::from_millis(200))
        .build()
        .await
        .unwrap()
}

/// What was done and found.
#[derive(Debug, Default)]
struct Outcome {
    written: AtomicUsize,
    failed: AtomicUsize,
    reads: AtomicUsize,
}

struct Fleet {
    redis: RedisServer,
    /// The network of each member.
    networks: Vec<Proxy>,
    table: FakeTable,
    guards: Vec<Guard<i64, Row>>,
    /// The highest version of each id whose write has returned.
    floors: Mutex<HashMap<i64, usize>>,
    outcome: Outcome,
    over: AtomicBool,
}

impl Fleet {
    async fn start() -> Arc<Self> {
        let redis = RedisServer::start();
        let table = FakeTable::with(0..IDS / 2);
        let (mut networks, mut guards) = (Vec::new(), Vec::new());
        for number in 0..MEMBERS {
            let network = Proxy::start(redis.port());
            guards.push(member(network.port(), &table, number).await);
            networks.push(network);
        }
        let fleet = Arc::new(Self {
            redis,
            networks,
            table,
            guards,
            floors: Mutex::default(),
            outcome: Outcome::default(),
            over: AtomicBool::new(false),
        });
        fleet.until_closed().await;
        fleet
    }

    async fn until_closed(&self) {
        let end = tokio::time::Instant::now() + CEILING;
        for guard in &self.guards {
            while guard.status().gate.state != GateState::Closed {
                let reason = guard.status().gate.reason;
                assert!(tokio::time::Instant::now() < end, "a gate stays open: {reason:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// Reads the id from one member and checks the answer against what was acknowledged before.
    async fn read(&self, guard: &Guard<i64, Row>, id: i64) {
        let floor = self.floors.lock().get(&id).copied().unwrap_or(0);
        let (seen, by) = match guard.check(&id) {
            Verdict::Absent => (None, Tier::Gate),
            _ => match guard.get(&id).await {
                Ok(Answer::Found { value, tier, .. }) => (Some(*value), tier),
                Ok(Answer::Absent(tier)) => (None, tier),
                // Shed or timed out: no answer is no wrong one.
                Err(_) => return,
            },
        };
        self.outcome.reads.fetch_add(1, Ordering::Relaxed);
        assert!(
            self.table.is_no_older(id, seen, floor),
            "id {id}: {seen:?} of {by:?} is older than version {floor}, whose write has returned; {:?}",
            guard.status().fleet
        );
    }

    /// Writes and reads at random members until it is over.
    async fn work(self: Arc<Self>) {
        while !self.over.load(Ordering::Relaxed) {
            let id = rand::random_range(0..IDS);
            let guard = &self.guards[rand::random_range(0..MEMBERS)];
            let (table, deletes) = (self.table.clone(), rand::random_ratio(1, 3));
            let run = async move {
                let version = if deletes { table.delete(id) } else { table.commit(id) };
                Ok::<_, Infallible>(version)
            };
            match guard.write(id, run).await {
                Ok(version) => {
                    let mut floors = self.floors.lock();
                    let floor = floors.entry(id).or_default();
                    *floor = version.max(*floor);
                    self.outcome.written.fetch_add(1, Ordering::Relaxed);
                }
                Err(_) => {
                    self.outcome.failed.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            for guard in &self.guards {
                self.read(guard, id).await;
            }
        }
    }

    /// Lets the writers work while `fault` happens, then until every gate is closed again.
    async fn work_through(self: &Arc<Self>, fault: impl Future<Output = ()>) {
        let workers: Vec<_> = (0..WRITERS).map(|_| tokio::spawn(Arc::clone(self).work())).collect();
        tokio::time::sleep(Duration::from_millis(500)).await;
        fault.await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        self.until_closed().await;
        let before = self.outcome.written.load(Ordering::Relaxed);
        let end = tokio::time::Instant::now() + CEILING;
        while self.outcome.written.load(Ordering::Relaxed) < before + 50 {
            assert!(tokio::time::Instant::now() < end, "writes don't recover");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.over.store(true, Ordering::Relaxed);
        for worker in workers {
            within(worker).await.unwrap();
        }
        self.until_closed().await;
        for guard in &self.guards {
            assert_eq!(guard.check(&ABSENT), Verdict::Absent);
            for id in 0..IDS {
                self.read(guard, id).await;
            }
        }
        let Outcome { written, failed, reads } = &self.outcome;
        println!("{written:?} writes, {failed:?} failed, {reads:?} reads");
    }
}

async fn sleep(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_member_has_written_all_serve_at_once() {
    let fleet = Fleet::start().await;
    fleet.work_through(sleep(1_000)).await;
    assert_eq!(fleet.outcome.failed.load(Ordering::Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_flush_no_member_refuses_or_serves_what_was_outdated() {
    let fleet = Fleet::start().await;
    let flushes = async {
        for pause in [200, 1_500] {
            fleet.redis.command(&["FLUSHALL"]);
            sleep(pause).await;
        }
    };
    fleet.work_through(flushes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_without_data_no_member_refuses_or_serves_what_was_outdated() {
    let fleet = Fleet::start().await;
    let restarts = async {
        fleet.redis.restart();
        sleep(1_000).await;
        // Away for longer than a lease and a write window.
        fleet.redis.kill();
        sleep(3_000).await;
        fleet.redis.restart();
    };
    fleet.work_through(restarts).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_server_stands_still_no_member_refuses_or_serves_what_was_outdated() {
    let fleet = Fleet::start().await;
    let stops = async {
        for millis in [100, 400, 900, 2_500] {
            fleet.redis.freeze();
            sleep(millis).await;
            fleet.redis.thaw();
            sleep(300).await;
        }
    };
    fleet.work_through(stops).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_cost_no_member_its_gate_for_good() {
    let fleet = Fleet::start().await;
    let cuts = async {
        for _ in 0..5 {
            fleet.redis.command(&["CLIENT", "KILL", "TYPE", "normal"]);
            sleep(200).await;
        }
    };
    fleet.work_through(cuts).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_comes_while_others_write_refuses_nothing_that_exists() {
    let fleet = Fleet::start().await;
    let joins = async {
        for number in 3..6 {
            let joined = member(fleet.redis.port(), &fleet.table, number).await;
            for _ in 0..400 {
                fleet.read(&joined, rand::random_range(0..IDS)).await;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            assert_eq!(joined.status().fleet.unwrap().copies_taken, 1);
            // Every other one leaves; the rest fall silent.
            if number % 2 == 1 {
                joined.shutdown(Duration::ZERO).await;
            }
        }
    };
    fleet.work_through(joins).await;
}

const WAYS: [Direction; 2] = [Direction::ToServer, Direction::ToClient];

/// Holds what goes these ways for a while.
async fn stall(network: &Proxy, ways: &[Direction], millis: u64) {
    for way in ways {
        network.set(*way, Flow::Hold);
    }
    sleep(millis).await;
    for way in ways {
        network.set(*way, Flow::Forward);
    }
}

/// For longer than a lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_network_stalls_in_either_direction_refuses_nothing_it_does_not_know() {
    let fleet = Fleet::start().await;
    let stalls = async {
        for ways in [&WAYS[..1], &WAYS[1..], &WAYS] {
            for network in &fleet.networks[..2] {
                stall(network, ways, 1_500).await;
                sleep(300).await;
            }
        }
    };
    fleet.work_through(stalls).await;
}

/// A replica that missed the last entries takes the server's place, for one member after the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failover_that_lost_entries_no_member_refuses_or_serves_what_was_outdated() {
    let fleet = Fleet::start().await;
    let replica = RedisServer::start();
    let failover = async {
        let port = fleet.redis.port().to_string();
        assert_eq!(replica.command(&["REPLICAOF", "127.0.0.1", &port]), "OK");
        let end = tokio::time::Instant::now() + CEILING;
        while !replica.command(&["INFO", "replication"]).contains("master_link_status:up") {
            assert!(tokio::time::Instant::now() < end, "no replication");
            sleep(20).await;
        }
        sleep(200).await;
        // From here on the replica misses what is written.
        assert_eq!(replica.command(&["REPLICAOF", "NO", "ONE"]), "OK");
        sleep(300).await;
        for network in &fleet.networks {
            network.switch_to(replica.port());
        }
        fleet.redis.kill();
    };
    fleet.work_through(failover).await;
}

/// Faults at random, one after the other, each healed again. `BLOOMGATE_SEED` repeats the choices of a
/// run, `BLOOMGATE_SECONDS` is how long it takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_random_faults_no_member_refuses_or_serves_what_was_outdated() {
    let given = |name| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let seed = given("BLOOMGATE_SEED").unwrap_or_else(rand::random);
    println!("BLOOMGATE_SEED={seed}");
    let fleet = Fleet::start().await;
    let seconds = testbed::repetitions(25, 30 * 60);
    let run_for = Duration::from_secs(given("BLOOMGATE_SECONDS").unwrap_or(seconds));
    let (fleet_of_faults, counts) = (Arc::clone(&fleet), Arc::new(Mutex::new(HashMap::new())));
    let counted = Arc::clone(&counts);
    let faults = async move {
        let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
        let end = tokio::time::Instant::now() + run_for;
        while tokio::time::Instant::now() < end {
            let fault = Fault::ALL[rng.random_range(0..Fault::ALL.len())];
            *counted.lock().entry(format!("{fault:?}")).or_insert(0_u32) += 1;
            let (victim, millis) = (rng.random_range(0..MEMBERS), rng.random_range(50..2_500));
            fault.happen(&fleet_of_faults, victim, millis).await;
            sleep(rng.random_range(0..1_000)).await;
        }
    };
    fleet.work_through(faults).await;
    println!("{:?}", counts.lock());
}

/// What happens at random.
#[derive(Clone, Copy, Debug)]
enum Fault {
    HoldRequests,
    HoldReplies,
    HoldBoth,
    Cut,
    Flush,
    Restart,
    Away,
    Freeze,
    LoseLog,
    LoseTable,
    Join,
}

impl Fault {
    const ALL: [Self; 11] = [
        Self::HoldRequests,
        Self::HoldReplies,
        Self::HoldBoth,
        Self::Cut,
        Self::Flush,
        Self::Restart,
        Self::Away,
        Self::Freeze,
        Self::LoseLog,
        Self::LoseTable,
        Self::Join,
    ];

    async fn happen(self, fleet: &Fleet, victim: usize, millis: u64) {
        let (redis, network) = (&fleet.redis, &fleet.networks[victim]);
        match self {
            Self::HoldRequests => stall(network, &WAYS[..1], millis).await,
            Self::HoldReplies => stall(network, &WAYS[1..], millis).await,
            Self::HoldBoth => stall(network, &WAYS, millis).await,
            Self::Cut => {
                network.set_both(Flow::Cut);
                network.set_both(Flow::Forward);
            }
            Self::Flush => drop(redis.command(&["FLUSHALL"])),
            Self::Restart => redis.restart(),
            Self::Away => {
                redis.kill();
                sleep(millis).await;
                redis.restart();
            }
            Self::Freeze => {
                redis.freeze();
                sleep(millis).await;
                redis.thaw();
            }
            Self::LoseLog => drop(redis.command(&["DEL", "bloomgate:{fleet}:log"])),
            Self::LoseTable => drop(redis.command(&["DEL", "bloomgate:{fleet}:members"])),
            Self::Join => {
                // It falls silent, as a process that is killed does.
                let joined = member(redis.port(), &fleet.table, MEMBERS).await;
                for _ in 0..millis / 10 {
                    fleet.read(&joined, rand::random_range(0..IDS)).await;
                    sleep(5).await;
                }
            }
        }
    }
}
