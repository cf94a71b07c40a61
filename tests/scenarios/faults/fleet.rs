//! Three instances of the service on one Redis and one PostgreSQL, stopped, killed and restarted.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use testbed::{PostgresServer, RedisServer, net};

use crate::outcome_log::is_unwritten;
use crate::service::{CEILING, Service, Setup, product_json};
use crate::traffic::absent_id;

const PRODUCTS: i64 = 5_000;
/// Products that the writers change at a time, the same ones through all instances.
const CHANGED: i64 = 20;
/// Longer than a write waits for a silent member, short for the first start over an empty Redis.
const WINDOW: [&str; 2] = ["--write-window", "6s"];

/// The three.
struct Fleet {
    services: Vec<Service>,
    redis: RedisServer,
    database: String,
}

/// What the writers know and count.
#[derive(Default)]
struct Ledger {
    /// The instances that are in service.
    urls: Mutex<Vec<String>>,
    /// Changes are numbered; for each id the last one that was acknowledged.
    floors: Mutex<HashMap<i64, u64>>,
    next: Mutex<u64>,
    written: AtomicUsize,
    failed: AtomicUsize,
    reads: AtomicUsize,
    over: AtomicBool,
}

impl Fleet {
    fn start() -> Self {
        let redis = RedisServer::start();
        let database = PostgresServer::shared().create_database();
        let mut fleet = Self { services: Vec::new(), redis, database };
        for number in 0..3 {
            let service = fleet.launch(&format!("instance {number}"));
            fleet.services.push(service);
        }
        fleet.until_closed();
        fleet
    }

    fn launch(&self, name: &str) -> Service {
        Service::start(&Setup {
            database_url: Some(self.database.clone()),
            redis: Some(&self.redis),
            products: PRODUCTS as u64,
            flags: &[WINDOW[0], WINDOW[1], "--instance-name", name, "--gate", "exact"],
            ..Setup::default()
        })
    }

    fn until_closed(&self) {
        for service in &self.services {
            service.until_closed();
        }
    }

    fn urls(&self) -> Vec<String> {
        self.services.iter().map(|service| service.url.clone()).collect()
    }
}

/// The number in a product's name.
fn number_of(reply: &net::Reply) -> Option<u64> {
    let product: Value = serde_json::from_slice(&reply.body).ok()?;
    product["name"].as_str()?.strip_prefix("change ")?.parse().ok()
}

impl Ledger {
    /// Reads a product from one instance, and checks that it is no older than the last change of it
    /// that was acknowledged before.
    fn read(&self, url: &str, id: i64) {
        let floor = self.floors.lock().unwrap().get(&id).copied().unwrap_or(0);
        // A stopped or killed instance gives no answer, which is no wrong one.
        let Ok(reply) = net::try_request("GET", &format!("{url}/products/{id}"), &[], b"") else {
            return;
        };
        if reply.status == 503 {
            return;
        }
        assert_eq!(reply.status, 200, "{url} refuses product {id}: {}", reply.text());
        let number = number_of(&reply).unwrap_or(0);
        assert!(number >= floor, "{url}, product {id}: change {number}, acknowledged {floor}");
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    fn urls(&self) -> Vec<String> {
        self.urls.lock().unwrap().clone()
    }

    /// Changes a product through one instance, and says whether the outcome is known: a change that
    /// may still come would be mixed up with a later one.
    fn write(&self, url: &str, id: i64) -> bool {
        let number = {
            let mut next = self.next.lock().unwrap();
            *next += 1;
            *next
        };
        let json = [("content-type", "application/json")];
        let body = product_json(&format!("change {number}"));
        let reply =
            net::try_request("PUT", &format!("{url}/products/{id}"), &json, body.as_bytes());
        match reply {
            Ok(reply) if reply.status == 200 => {
                self.floors.lock().unwrap().insert(id, number);
                self.written.fetch_add(1, Ordering::Relaxed);
                true
            }
            outcome => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(20));
                outcome.is_ok_and(|reply| is_unwritten(&reply))
            }
        }
    }

    /// Creates a product and reads it at once from all instances.
    fn create(&self, through: &str) {
        let json = [("content-type", "application/json")];
        let body = product_json("change 0");
        let reply =
            net::try_request("POST", &format!("{through}/products"), &json, body.as_bytes());
        match reply {
            Ok(reply) if reply.status == 201 => {
                let product: Value = serde_json::from_slice(&reply.body).unwrap();
                self.written.fetch_add(1, Ordering::Relaxed);
                for url in &self.urls() {
                    self.read(url, product["id"].as_i64().unwrap());
                }
            }
            _ => {
                self.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Writes and reads until it is over. Each worker has its own ids.
    fn work(&self, worker: i64, workers: i64) {
        let mut ids: Vec<i64> = (1..=CHANGED).filter(|id| id % workers == worker).collect();
        let mut turn = 0_usize;
        while !self.over.load(Ordering::Relaxed) {
            for id in &mut ids {
                let urls = self.urls();
                turn += 1;
                if !self.write(&urls[turn % urls.len()], *id) {
                    *id += CHANGED;
                    assert!(*id <= PRODUCTS, "too many writes have an unknown outcome");
                    continue;
                }
                for url in &urls {
                    self.read(url, *id);
                }
            }
            let urls = self.urls();
            self.create(&urls[turn % urls.len()]);
        }
    }
}

/// Lets writers and readers work on all instances while `fault` happens, and until every gate is
/// closed again.
fn work_through(fleet: &mut Fleet, fault: impl FnOnce(&mut Fleet, &Ledger)) {
    const WORKERS: i64 = 2;
    let ledger = Ledger { urls: Mutex::new(fleet.urls()), ..Ledger::default() };
    thread::scope(|threads| {
        for worker in 0..WORKERS {
            let ledger = &ledger;
            threads.spawn(move || ledger.work(worker, WORKERS));
        }
        thread::sleep(Duration::from_millis(500));
        fault(fleet, &ledger);
        fleet.until_closed();
        let before = ledger.written.load(Ordering::Relaxed);
        let end = std::time::Instant::now() + CEILING;
        while ledger.written.load(Ordering::Relaxed) < before + 20 {
            assert!(std::time::Instant::now() < end, "writes don't recover");
            thread::sleep(Duration::from_millis(20));
        }
        ledger.over.store(true, Ordering::Relaxed);
    });
    fleet.until_closed();
    for service in &fleet.services {
        assert_eq!(service.product(absent_id()), 404);
        assert!(!service.program.stderr().contains("panicked"), "{}", service.program.stderr());
        let status = service.guard();
        assert_eq!(status["fleet"]["members"].as_array().unwrap().len(), 3, "{status}");
    }
    println!("{:?} writes, {:?} failed, {:?} reads", ledger.written, ledger.failed, ledger.reads);
}

#[test]
fn case_22_an_instance_stopped_for_longer_than_its_lease_refuses_nothing_when_it_resumes() {
    let mut fleet = Fleet::start();
    work_through(&mut fleet, |fleet, _| {
        for millis in [100, 1_000, 4_000, 9_000] {
            fleet.services[0].program.freeze();
            thread::sleep(Duration::from_millis(millis));
            fleet.services[0].program.thaw();
            thread::sleep(Duration::from_millis(500));
        }
    });
}

#[test]
fn a_killed_instance_delays_the_others_and_its_successor_refuses_nothing() {
    let mut fleet = Fleet::start();
    work_through(&mut fleet, |fleet, ledger| {
        for _ in 0..2 {
            let killed = fleet.services.remove(0);
            killed.program.kill9();
            thread::sleep(Duration::from_millis(500));
            let successor = fleet.launch("successor");
            successor.until("ready", || successor.get("/readyz").status == 200);
            successor.until_closed();
            fleet.services.push(successor);
            *ledger.urls.lock().unwrap() = fleet.urls();
        }
        // The rows of the killed are fenced, waited for and removed.
        let service = &fleet.services[0];
        service.until("three members", || {
            service.guard()["fleet"]["members"].as_array().is_some_and(|all| all.len() == 3)
        });
    });
}

#[test]
fn a_rolling_restart_under_traffic_waits_for_no_predecessor() {
    let mut fleet = Fleet::start();
    work_through(&mut fleet, |fleet, ledger| {
        for _ in 0..3 {
            let successor = fleet.launch("successor");
            successor.until("ready", || successor.get("/readyz").status == 200);
            successor.until_closed();
            let predecessor = fleet.services.remove(0);
            fleet.services.push(successor);
            // As a load balancer does, and lets the requests under way end.
            *ledger.urls.lock().unwrap() = fleet.urls();
            thread::sleep(Duration::from_millis(300));
            let status = predecessor.program.terminate();
            assert!(status.success(), "{status}:\n{}", predecessor.program.stderr());
        }
    });
}
