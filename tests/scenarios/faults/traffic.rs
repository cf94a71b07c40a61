//! Continuous requests from several threads, with a log of their outcomes.
//!
//! A false refusal (404 for an existing product) is an error at any time. So is an answer that
//! takes longer than [`HANG`], and any status that isn't named here.
//!
//! In a *calm* phase nothing is broken, and 503 is an error with one exception. A write needs the
//! shared cache to confirm its write intent within 100 ms, which a busy machine misses at times;
//! the service then answers 503, says that nothing was written, and a client may repeat the write.
//! The worker does so, counts these answers, and bounds them: at most [`MAX_REPEATS`] in a row, and
//! a share of all writes that the outcome log limits. The outcome log also checks afterwards that a
//! repeated write has left one row, so that "nothing was written" was true. A read has no such
//! exception: without the shared cache it asks the database, and has seconds for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use testbed::net::{Conn, Reply};

use crate::outcome_log::{OutcomeLog, is_unwritten, name_in};
use crate::service::{CEILING, Service, product_json};

/// An answer that takes longer is an error. Many times the longest budget of a request, so that a
/// busy machine doesn't reach it.
pub(crate) const HANG: Duration = Duration::from_secs(30);
/// The pause between two requests of a thread, so that several tests fit on a small machine.
const PAUSE: Duration = Duration::from_millis(3);
/// The pause after a 503.
const AFTER_503: Duration = Duration::from_millis(20);
/// The pause between two writes.
const BETWEEN_WRITES: Duration = Duration::from_millis(30);
/// The most times in a row that a write is repeated in a calm phase.
const MAX_REPEATS: u64 = 3;
/// Ids from here on have no product.
pub(crate) const ABSENT: i64 = 1_000_000_000_000;

/// The requests of one thread.
pub(crate) enum Workload {
    /// The same few products repeatedly: 200.
    Cached(std::ops::RangeInclusive<i64>),
    /// One product after the other: 200, or 503 while reads may fail.
    Uncached(std::ops::RangeInclusive<i64>),
    /// Ids without a product: 404.
    Absent,
    /// Ids without a product past an open gate: 404, or 503 while reads may fail.
    AbsentUnguarded,
    /// Creates a product (201, or 503 while writes may fail) and reads it at once (200, or 503
    /// while reads may fail).
    Writes,
}

/// Which requests may fail now.
#[derive(Default)]
struct Phase {
    stop: AtomicBool,
    reads_may_fail: AtomicBool,
    writes_may_fail: AtomicBool,
}

/// The running threads.
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

    /// Returns once each thread has received this many more answers.
    pub(crate) fn wait_for_answers(&self, answers: u64) {
        let counts = || self.threads.iter().map(|(_, count)| count.load(Ordering::Relaxed));
        let goals: Vec<u64> = counts().map(|count| count + answers).collect();
        let started = Instant::now();
        while counts().zip(&goals).any(|(count, goal)| count < *goal) {
            assert!(started.elapsed() < 2 * CEILING, "the traffic has stopped");
            assert!(self.threads.iter().all(|(thread, _)| !thread.is_finished()), "a thread died");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sets whether reads and writes may be answered with 503. A request in flight during the
    /// change may fail if either rule allows it.
    pub(crate) fn may_fail(&self, reads: bool, writes: bool) {
        self.phase.reads_may_fail.store(reads, Ordering::SeqCst);
        self.phase.writes_may_fail.store(writes, Ordering::SeqCst);
    }

    /// Ends the threads, and fails if any answer was wrong.
    pub(crate) fn stop(self, service: &Service) -> OutcomeLog {
        self.phase.stop.store(true, Ordering::SeqCst);
        let mut all = OutcomeLog::default();
        for (thread, _) in self.threads {
            all.merge(thread.join().unwrap());
        }
        let shown = all.wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
        let log = service.program.stderr();
        assert!(
            all.wrong.is_empty(),
            "{} wrong answers:\n{shown}\n{:?}\n{log}",
            all.wrong.len(),
            all.answers
        );
        all.check_repeats();
        all
    }
}

/// The usual workloads over a table of `products` rows.
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
        let repeat =
            |ids: std::ops::RangeInclusive<i64>| ids.collect::<Vec<_>>().into_iter().cycle();
        match workload {
            Workload::Cached(ids) => self.read_each("cached", 200, false, repeat(ids)),
            Workload::Uncached(ids) => self.read_each("uncached", 200, true, repeat(ids)),
            Workload::Absent => {
                self.read_each("absent", 404, false, std::iter::repeat_with(absent_id));
            }
            Workload::AbsentUnguarded => {
                self.read_each("unguarded", 404, true, std::iter::repeat_with(absent_id));
            }
            Workload::Writes => self.write(),
        }
    }

    fn read_each(
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
        let reply = self.send(workload, "GET", &format!("/products/{id}"), b"")?;
        let after = may_fail(&self.phase);
        self.check(workload, id, &reply, right, before || after);
        Some(reply)
    }

    fn write(&mut self) {
        static NAMES: AtomicU64 = AtomicU64::new(0);
        let new_name = || format!("written {}", NAMES.fetch_add(1, Ordering::Relaxed));
        let mut name = new_name();
        let mut repeats_in_a_row = 0;
        while !self.phase.stop.load(Ordering::SeqCst) {
            let may_fail = |phase: &Phase| phase.writes_may_fail.load(Ordering::SeqCst);
            let before = may_fail(&self.phase);
            let body = product_json(&name);
            if let Some(reply) = self.send("post", "POST", "/products", body.as_bytes()) {
                let may_fail = before || may_fail(&self.phase);
                let unwritten = reply.status == 503 && is_unwritten(&reply);
                let repeat = unwritten && !may_fail && repeats_in_a_row < MAX_REPEATS;
                self.check("post", 0, &reply, 201, may_fail || repeat);
                if repeat {
                    repeats_in_a_row += 1;
                    self.outcomes.repeats += 1;
                } else {
                    repeats_in_a_row = 0;
                    let name = std::mem::replace(&mut name, new_name());
                    match reply.status {
                        201 => self.read_created(&reply, name),
                        503 if unwritten => self.outcomes.not_written.push(name),
                        _ => self.outcomes.unknown.push(name),
                    }
                }
            } else {
                // An error is recorded already, and fails the test.
                self.outcomes.unknown.push(std::mem::replace(&mut name, new_name()));
            }
            self.progress.fetch_add(1, Ordering::Relaxed);
            thread::sleep(BETWEEN_WRITES);
        }
        // If the last attempt was refused, nothing has this name.
        if repeats_in_a_row > 0 {
            self.outcomes.not_written.push(name);
        }
    }

    fn read_created(&mut self, reply: &Reply, name: String) {
        let product: Value = serde_json::from_slice(&reply.body).unwrap();
        let id = product["id"].as_i64().unwrap();
        let read = self.read("written", id, 200, true);
        if let Some(read) = read.filter(|read| read.status == 200)
            && name_in(&read) != name
        {
            self.outcomes.wrong.push(format!("{id} is not {name}: {}", read.text()));
        }
        self.outcomes.created.push((id, name));
    }

    fn send(&mut self, workload: &str, method: &str, target: &str, body: &[u8]) -> Option<Reply> {
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

    fn check(
        &mut self,
        workload: &'static str,
        id: i64,
        reply: &Reply,
        right: u16,
        may_be_unavailable: bool,
    ) {
        *self.outcomes.answers.entry((workload, reply.status)).or_default() += 1;
        let unavailable = reply.status == 503 && reply.header("retry-after").is_some();
        if reply.status != right && !(may_be_unavailable && unavailable) {
            let text = reply.text();
            self.outcomes.wrong.push(format!("{workload} {id}: {} {text}", reply.status));
        }
        thread::sleep(if reply.status == 503 { AFTER_503 } else { PAUSE });
    }
}

/// An id without a product that no request has named before.
pub(crate) fn absent_id() -> i64 {
    static NEXT: AtomicI64 = AtomicI64::new(ABSENT);
    NEXT.fetch_add(7_919, Ordering::Relaxed)
}

/// Reads each id on a connection of its own, all at the same time.
pub(crate) fn read_concurrently(service: &Service, ids: &[i64]) -> Vec<Reply> {
    let conns: Vec<Conn> = ids.iter().map(|id| send_read(service, *id)).collect();
    conns.into_iter().map(|mut conn| conn.read_reply(false).unwrap()).collect()
}

/// Sends a read and doesn't wait for its answer.
pub(crate) fn send_read(service: &Service, id: i64) -> Conn {
    let mut conn = Conn::open(&service.url);
    conn.set_timeout(HANG).unwrap();
    let request = format!("GET /products/{id} HTTP/1.1\r\nHost: test\r\n\r\n");
    conn.send(request.as_bytes()).unwrap();
    conn
}

/// A false-positive rate so small that a test meets no false positive.
pub(crate) const EXACT: [&str; 2] = ["--false-positive-rate", "0.000001"];
/// The same for the only instance, which needs no lease to refuse and to cache.
pub(crate) const EXACT_SINGLE: [&str; 3] = [EXACT[0], EXACT[1], "--single-instance"];
/// The same for a member of a fleet, which waits for the write window at its first start.
pub(crate) const EXACT_FLEET: [&str; 4] = [EXACT[0], EXACT[1], "--write-window", "6s"];
