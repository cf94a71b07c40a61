//! Requests without end, from several threads, and what came of them.
//!
//! A false refusal (404 for what exists) is wrong at any time. So is an answer that takes longer
//! than [`HANG`], and any status that isn't named here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use testbed::net::{Conn, Reply};

use crate::outcome_log::{OutcomeLog, is_unwritten, name_in};
use crate::service::{CEILING, Service, product_json};

/// What takes longer than this hangs.
pub(crate) const HANG: Duration = Duration::from_secs(8);
/// Between two requests of a thread, so that many tests fit on a small machine.
const PAUSE: Duration = Duration::from_millis(3);
/// After a request that was answered with 503.
const AFTER_503: Duration = Duration::from_millis(20);
/// So many refused writes in a row are not by chance.
const IN_A_ROW: u32 = 4;
/// Ids from here on have no product.
pub(crate) const ABSENT: i64 = 1_000_000_000_000;

/// What one thread asks for.
pub(crate) enum Workload {
    /// The same few products all over again: 200.
    Cached(std::ops::RangeInclusive<i64>),
    /// One product after the other: 200, or 503 while reads may fail.
    Uncached(std::ops::RangeInclusive<i64>),
    /// Ids without a product: 404.
    Absent,
    /// Ids without a product past an open gate: 404, or 503 while reads may fail.
    AbsentUnguarded,
    /// Creates a product (201, or 503 while writes may fail) and reads it at once (200, or 503
    /// while reads may fail). On a busy machine a write may miss a budget of 100 ms at any time,
    /// but not [`IN_A_ROW`] of them one after the other.
    Writes,
}

/// What may go wrong now.
#[derive(Default)]
struct Phase {
    stop: AtomicBool,
    reads_may_fail: AtomicBool,
    writes_may_fail: AtomicBool,
}

/// Threads that keep asking.
pub(crate) struct Traffic {
    phase: Arc<Phase>,
    threads: Vec<(JoinHandle<OutcomeLog>, Arc<AtomicU64>)>,
}

impl Traffic {
    pub(crate) fn start(service: &Service, workloads: Vec<Workload>) -> Self {
        let phase = Arc::new(Phase::default());
        let start = |workload| {
            let progress = Arc::new(AtomicU64::new(0));
            let mut worker = Worker {
                url: service.url.clone(),
                phase: Arc::clone(&phase),
                progress: Arc::clone(&progress),
                conn: None,
                outcomes: OutcomeLog::default(),
            };
            let thread = thread::spawn(move || {
                worker.run(workload);
                worker.outcomes
            });
            (thread, progress)
        };
        let threads = workloads.into_iter().map(start).collect();
        Self { phase, threads }
    }

    /// Returns once each thread has had so many more answers.
    pub(crate) fn wait_for_answers(&self, answers: u64) {
        let counts = || self.threads.iter().map(|(_, count)| count.load(Ordering::Relaxed));
        let goals: Vec<u64> = counts().map(|count| count + answers).collect();
        let started = Instant::now();
        while counts().zip(&goals).any(|(count, goal)| count < *goal) {
            assert!(started.elapsed() < CEILING, "the traffic has stopped");
            assert!(self.threads.iter().all(|(thread, _)| !thread.is_finished()), "a thread died");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether reads and writes may be answered with 503 from here on; for requests under way the
    /// more lenient rule counts.
    pub(crate) fn may_fail(&self, reads: bool, writes: bool) {
        self.phase.reads_may_fail.store(reads, Ordering::SeqCst);
        self.phase.writes_may_fail.store(writes, Ordering::SeqCst);
    }

    /// Ends it, and fails if anything was wrong.
    pub(crate) fn stop(self, service: &Service) -> OutcomeLog {
        self.phase.stop.store(true, Ordering::SeqCst);
        let mut all = OutcomeLog::default();
        for (thread, _) in self.threads {
            let one = thread.join().unwrap();
            for (key, count) in one.answers {
                *all.answers.entry(key).or_default() += count;
            }
            all.created.extend(one.created);
            all.not_written.extend(one.not_written);
            all.unknown.extend(one.unknown);
            all.wrong.extend(one.wrong);
        }
        let shown = all.wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
        let log = service.program.stderr();
        assert!(
            all.wrong.is_empty(),
            "{} wrong answers:\n{shown}\n{:?}\n{log}",
            all.wrong.len(),
            all.answers
        );
        all
    }
}

/// The usual workloads over a table of so many products.
pub(crate) fn workloads(products: i64) -> Vec<Workload> {
    let half = products / 2;
    vec![
        Workload::Cached(1..=50),
        Workload::Uncached(101..=half),
        Workload::Uncached(half + 1..=products),
        Workload::Absent,
        Workload::Writes,
    ]
}

struct Worker {
    url: String,
    phase: Arc<Phase>,
    progress: Arc<AtomicU64>,
    conn: Option<Conn>,
    outcomes: OutcomeLog,
}

impl Worker {
    fn run(&mut self, workload: Workload) {
        let asks = |ids: std::ops::RangeInclusive<i64>| ids.collect::<Vec<_>>().into_iter().cycle();
        match workload {
            Workload::Cached(ids) => self.each("cached", 200, false, asks(ids)),
            Workload::Uncached(ids) => self.each("uncached", 200, true, asks(ids)),
            Workload::Absent => self.each("absent", 404, false, std::iter::repeat_with(absent_id)),
            Workload::AbsentUnguarded => {
                self.each("unguarded", 404, true, std::iter::repeat_with(absent_id));
            }
            Workload::Writes => self.write(),
        }
    }

    fn each(
        &mut self,
        workload: &'static str,
        right: u16,
        fails: bool,
        ids: impl Iterator<Item = i64>,
    ) {
        for id in ids {
            if self.phase.stop.load(Ordering::SeqCst) {
                return;
            }
            self.read(workload, id, right, fails);
            self.progress.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn read(&mut self, workload: &'static str, id: i64, right: u16, fails: bool) -> Option<Reply> {
        let may_fail = |phase: &Phase| fails && phase.reads_may_fail.load(Ordering::SeqCst);
        let before = may_fail(&self.phase);
        let reply = self.ask(workload, "GET", &format!("/products/{id}"), b"")?;
        let after = may_fail(&self.phase);
        self.judge(workload, id, &reply, right, before || after);
        Some(reply)
    }

    fn write(&mut self) {
        static NAMES: AtomicU64 = AtomicU64::new(0);
        let mut refused = 0;
        while !self.phase.stop.load(Ordering::SeqCst) {
            let name = format!("written {}", NAMES.fetch_add(1, Ordering::Relaxed));
            let may_fail = |phase: &Phase| phase.writes_may_fail.load(Ordering::SeqCst);
            let before = may_fail(&self.phase);
            if let Some(reply) =
                self.ask("post", "POST", "/products", product_json(&name).as_bytes())
            {
                let lenient = before || may_fail(&self.phase);
                refused = if reply.status == 503 && !lenient { refused + 1 } else { 0 };
                let by_chance = refused < IN_A_ROW && reply.status == 503 && is_unwritten(&reply);
                self.judge("post", 0, &reply, 201, lenient || by_chance);
                if reply.status == 201 {
                    let product: Value = serde_json::from_slice(&reply.body).unwrap();
                    let id = product["id"].as_i64().unwrap();
                    let read = self.read("written", id, 200, true);
                    if let Some(read) = read.filter(|read| read.status == 200)
                        && name_in(&read) != name
                    {
                        self.outcomes.wrong.push(format!("{id} is not {name}: {}", read.text()));
                    }
                    self.outcomes.created.push((id, name));
                } else if reply.status == 503 {
                    if is_unwritten(&reply) {
                        self.outcomes.not_written.push(name);
                    } else {
                        self.outcomes.unknown.push(name);
                    }
                }
            }
            self.progress.fetch_add(1, Ordering::Relaxed);
            thread::sleep(10 * PAUSE);
        }
    }

    fn ask(&mut self, workload: &str, method: &str, target: &str, body: &[u8]) -> Option<Reply> {
        let started = Instant::now();
        let mut conn = match self.conn.take().map_or_else(|| Conn::try_open(&self.url), Ok) {
            Ok(conn) => conn,
            Err(error) => {
                self.outcomes.wrong.push(format!("{workload}: no connection: {error}"));
                return None;
            }
        };
        conn.set_timeout(HANG).unwrap();
        let headers: &[_] =
            if body.is_empty() { &[] } else { &[("content-type", "application/json")] };
        let reply = conn.try_request(method, target, headers, body);
        let took = started.elapsed();
        match reply {
            Ok(reply) => {
                if took > HANG {
                    self.outcomes
                        .wrong
                        .push(format!("{workload}: {method} {target} took {took:?}"));
                }
                self.conn = Some(conn);
                Some(reply)
            }
            Err(error) => {
                let wrong = format!("{workload}: {method} {target} after {took:?}: {error}");
                self.outcomes.wrong.push(wrong);
                None
            }
        }
    }

    fn judge(&mut self, workload: &'static str, id: i64, reply: &Reply, right: u16, lenient: bool) {
        *self.outcomes.answers.entry((workload, reply.status)).or_default() += 1;
        let unavailable = reply.status == 503 && reply.header("retry-after").is_some();
        if reply.status != right && !(lenient && unavailable) {
            let text = reply.text();
            self.outcomes.wrong.push(format!("{workload} {id}: {} {text}", reply.status));
        }
        thread::sleep(if reply.status == 503 { AFTER_503 } else { PAUSE });
    }
}

/// An id that has no product and that nobody has asked for.
pub(crate) fn absent_id() -> i64 {
    static NEXT: AtomicI64 = AtomicI64::new(ABSENT);
    NEXT.fetch_add(7_919, Ordering::Relaxed)
}

/// Asks for each id from a thread of its own, all at the same time.
pub(crate) fn all_at_once(service: &Service, ids: &[i64]) -> Vec<Reply> {
    thread::scope(|scope| {
        let ask = |id: &i64| {
            let target = format!("/products/{id}");
            scope.spawn(move || {
                let mut conn = Conn::open(&service.url);
                conn.set_timeout(HANG).unwrap();
                conn.request("GET", &target, &[], b"")
            })
        };
        let threads: Vec<_> = ids.iter().map(ask).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// So few false positives that a test meets none.
pub(crate) const EXACT: [&str; 2] = ["--false-positive-rate", "0.000001"];
