//! Clients that write through random instances and read each write at once from all.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use testbed::net::{self, Reply};

use crate::cluster::Cluster;
use crate::conns::Conns;
use crate::ledger::{Ledger, Outcome};
use crate::random::Random;
use crate::service::{CEILING, product_json};

/// Threads that write.
pub(crate) const WRITERS: usize = 3;
/// Ids from here on have no row.
const ABSENT: i64 = 1_000_000_000_000;
/// The pause of a client between two requests, so that several tests fit on a small machine.
const PAUSE: Duration = Duration::from_millis(4);

/// The running clients and what they count.
pub(crate) struct Driver {
    pub(crate) ledger: Arc<Ledger>,
    /// The instances that clients use. Each request holds it, so that one which was taken out has
    /// none in flight.
    routes: RwLock<Vec<String>>,
    /// Whether a writer leaves some writes without waiting for their answer.
    pub(crate) abandons: AtomicBool,
    pub(super) over: AtomicBool,
    pub(super) absent: AtomicU64,
    pub(super) watch: Mutex<Watch>,
}

/// What was seen of the status documents.
pub(super) struct Watch {
    pub(super) last_open: Option<Instant>,
    /// For each process its first and last count of loads that found no row.
    pub(super) loads: HashMap<String, (u64, u64)>,
}

impl Driver {
    pub(super) fn new(cluster: &Cluster) -> Self {
        cluster.ledger.reset_counts();
        // A process that is started later begins at 0.
        let loads = cluster.services.iter().map(|service| {
            let loads = service.count("/counts/loader/absent");
            (service.url.clone(), (loads, loads))
        });
        let loads = loads.collect();
        Self {
            ledger: Arc::clone(&cluster.ledger),
            routes: RwLock::new(cluster.urls()),
            abandons: AtomicBool::new(false),
            over: AtomicBool::new(false),
            absent: AtomicU64::new(0),
            watch: Mutex::new(Watch { last_open: None, loads }),
        }
    }

    /// Sends all later requests to these instances. Returns when no request to another is in flight.
    pub(crate) fn route_to(&self, urls: Vec<String>) {
        *self.routes.write().unwrap() = urls;
    }

    /// Waits for this many more acknowledged writes.
    pub(crate) fn until_written(&self, more: u64) {
        let goal = self.ledger.counts().writes + more;
        let end =
            Instant::now() + CEILING + Duration::from_millis(50) * u32::try_from(more).unwrap();
        while self.ledger.counts().writes < goal {
            assert!(Instant::now() < end, "writes don't recover: {:?}", self.ledger.counts());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Reads a row through an instance and judges the answer.
    fn read(&self, conns: &mut Conns, url: &str, id: i64) {
        let routes = self.routes.read().unwrap();
        if !routes.iter().any(|route| route == url) {
            return;
        }
        let floor = self.ledger.floor(id);
        let reply = conns.ask(url, "GET", &format!("/products/{id}"), b"");
        self.ledger.judge(&format!("GET {url}"), id, floor, reply.as_ref());
    }

    fn read_everywhere(&self, conns: &mut Conns, id: i64) {
        let urls = self.routes.read().unwrap().clone();
        for url in urls {
            self.read(conns, &url, id);
        }
    }

    /// Creates a row and returns its id.
    fn create(&self, conns: &mut Conns, random: &mut Random) -> Option<i64> {
        let routes = self.routes.read().unwrap();
        let url = routes.get(random.below(routes.len()))?;
        let version = self.ledger.next_version();
        let body = product_json(&Ledger::name(version));
        let reply = conns.ask(url, "POST", "/products", body.as_bytes());
        let Some(reply) = reply.filter(|reply| reply.status == 201) else {
            self.ledger.not_created();
            return None;
        };
        let product: Value = serde_json::from_slice(&reply.body).unwrap();
        let id = product["id"].as_i64().unwrap();
        self.ledger.created(id, version);
        Some(id)
    }

    /// Changes or deletes a row.
    fn change(&self, conns: &mut Conns, random: &mut Random, id: i64, deletes: bool) {
        let routes = self.routes.read().unwrap();
        if let Some(url) = routes.get(random.below(routes.len())) {
            let abandons = self.abandons.load(Ordering::Relaxed) && random.below(3) == 0;
            self.change_at(conns, url, id, deletes, abandons);
        }
    }

    /// Changes or deletes a row through one instance. A request that is abandoned is sent, and its
    /// connection reset.
    pub(crate) fn change_at(
        &self,
        conns: &mut Conns,
        url: &str,
        id: i64,
        deletes: bool,
        abandons: bool,
    ) {
        let Some(change) = self.ledger.begin(id, deletes) else { return };
        let path = format!("/products/{id}");
        let (method, body) = if deletes {
            ("DELETE", String::new())
        } else {
            ("PUT", product_json(&Ledger::name(change.version)))
        };
        if abandons {
            conns.abandon(url, method, &path, body.as_bytes());
            self.ledger.end(id, change, Outcome::Unknown);
            return;
        }
        let floor = self.ledger.floor(id);
        let reply = conns.ask(url, method, &path, body.as_bytes());
        let outcome = match &reply {
            Some(reply) if reply.status == if deletes { 204 } else { 200 } => Outcome::Acknowledged,
            // A row that may have been deleted.
            Some(reply) if reply.status == 404 => {
                self.ledger.judge(&format!("{method} {url}"), id, floor, Some(reply));
                Outcome::NotWritten
            }
            Some(reply) if reply.status == 503 && is_unwritten(reply) => Outcome::NotWritten,
            Some(reply) if reply.status == 503 => Outcome::Unknown,
            Some(reply) => {
                self.ledger.wrong(format!("{method} {url} {id}: {}", reply.text()));
                Outcome::Unknown
            }
            None => Outcome::Unknown,
        };
        self.ledger.end(id, change, outcome);
    }

    /// One writer: it alone changes its rows.
    pub(super) fn write(&self, writer: usize, mut random: Random) {
        let mut conns = Conns::default();
        let mut own: Vec<i64> = (1..=30).filter(|id| *id as usize % WRITERS == writer).collect();
        while !self.is_over() {
            let id = match random.below(10) {
                0..3 => self.create(&mut conns, &mut random).inspect(|id| own.push(*id)),
                dice => {
                    let id = own[random.below(own.len())];
                    let deletes = dice == 9 && own.len() > 10;
                    self.change(&mut conns, &mut random, id, deletes);
                    // A deleted row is read once more, and forgotten.
                    own.retain(|own| !deletes || *own != id);
                    Some(id)
                }
            };
            match id {
                Some(id) => self.read_everywhere(&mut conns, id),
                None => thread::sleep(5 * PAUSE),
            }
            // A row that another writer may be changing now.
            self.read_everywhere(&mut conns, self.ledger.recent(random.below(20)));
            conns.keep_only(&self.routes.read().unwrap());
            thread::sleep(PAUSE);
        }
    }

    /// Asks for ids that have no row.
    pub(super) fn attack(&self) {
        let mut conns = Conns::default();
        for turn in 0.. {
            if self.is_over() {
                return;
            }
            {
                let routes = self.routes.read().unwrap();
                let id = ABSENT + i64::from(turn) * 7_919;
                if let Some(url) = routes.get(turn as usize % routes.len().max(1)) {
                    let reply = conns.ask(url, "GET", &format!("/products/{id}"), b"");
                    self.absent.fetch_add(1, Ordering::Relaxed);
                    if let Some(reply) = reply
                        && reply.status != 404
                        && reply.status != 503
                    {
                        self.ledger.wrong(format!("absent {id}: {}", reply.text()));
                    }
                }
                conns.keep_only(&routes);
            }
            thread::sleep(PAUSE);
        }
    }

    /// Looks at all status documents.
    pub(super) fn watch(&self) {
        while !self.is_over() {
            self.look();
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// One look; true if every instance refuses.
    pub(super) fn look(&self) -> bool {
        let routes = self.routes.read().unwrap();
        let mut all_refuse = true;
        for url in routes.iter() {
            let reply = net::try_request("GET", &format!("{url}/guard"), &[], b"");
            let status =
                reply.ok().and_then(|reply| serde_json::from_slice::<Value>(&reply.body).ok());
            let refuses = status.as_ref().is_some_and(|status| status["gate"]["state"] == "closed");
            let mut watch = self.watch.lock().unwrap();
            if !refuses {
                all_refuse = false;
                watch.last_open = Some(Instant::now());
            }
            if let Some(loads) =
                status.and_then(|status| status["counts"]["loader"]["absent"].as_u64())
            {
                watch.loads.entry(url.clone()).or_default().1 = loads;
            }
        }
        all_refuse
    }

    /// Reads every row of the database, and every row that was ever known, from all instances.
    pub(super) fn read_all(&self, cluster: &Cluster) {
        let mut conns = Conns::default();
        let rows: HashSet<i64> = cluster.ids().into_iter().collect();
        for id in self.ledger.ids() {
            self.read_everywhere(&mut conns, id);
        }
        for url in cluster.urls() {
            for id in &rows {
                let reply = conns.ask(&url, "GET", &format!("/products/{id}"), b"");
                let status = reply.map(|reply| reply.status);
                assert_eq!(status, Some(200), "{url} refuses the committed row {id}");
            }
        }
    }
}

/// Whether a 503 says that nothing was written. Other texts say that the outcome is unknown.
fn is_unwritten(reply: &Reply) -> bool {
    reply.text().contains("nothing was written")
}
