//! The log lines of an outage, captured.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

use super::faulty_store::{BUDGET, Behaviour, Bench};
use crate::error::StoreErrorKind;

const DOWN: Behaviour = Behaviour::Fails(StoreErrorKind::Unreachable);
const SECOND: Duration = Duration::from_secs(1);

/// What this thread logs from `info` up.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn capture() -> (Self, DefaultGuard) {
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::INFO)
            .with_ansi(false)
            .without_time()
            .with_writer(log.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn lines(&self) -> Vec<String> {
        String::from_utf8(self.0.lock().clone()).unwrap().lines().map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

fn contains(line: &str, parts: &[&str]) {
    for part in parts {
        assert!(line.contains(part), "no {part:?} in {line}");
    }
}

#[tokio::test]
async fn an_outage_is_one_line_at_its_begin_and_one_at_its_end() {
    let (log, _capturing) = Log::capture();
    let bench = Bench::new(Behaviour::Healthy);
    assert_eq!(bench.read_error().await, None);
    bench.set(DOWN);
    for _ in 0..2 {
        assert!(bench.read_error().await.is_some());
    }
    assert_eq!(log.lines(), [""; 0], "two failures are no outage");
    for _ in 0..100 {
        assert!(bench.read_error().await.is_some());
        bench.time.advance(SECOND);
    }
    assert_eq!(log.lines().len(), 1, "{:?}", log.lines());
    contains(&log.lines()[0], &["WARN", "products", "cache.example:6379", "Unreachable"]);

    bench.set(Behaviour::Healthy);
    for _ in 0..100 {
        assert_eq!(bench.read_error().await, None);
    }
    assert_eq!(log.lines().len(), 2, "{:?}", log.lines());
    contains(&log.lines()[1], &["INFO", "products", "cache.example:6379", "lasted=100s"]);
}

#[tokio::test]
async fn a_failure_at_the_start_begins_an_outage() {
    let (log, _capturing) = Log::capture();
    let bench = Bench::new(DOWN);
    assert!(bench.shared.prepare().await.is_err());
    assert_eq!(log.lines().len(), 1, "{:?}", log.lines());
    contains(&log.lines()[0], &["WARN", "products"]);
    bench.time.advance(SECOND);
    bench.set(Behaviour::Healthy);
    assert_eq!(bench.read_error().await, None);
    assert_eq!(log.lines().len(), 2, "{:?}", log.lines());
    contains(&log.lines()[1], &["INFO", "lasted=1s"]);
    // From now on it is a server that once answered.
    bench.set(DOWN);
    assert!(bench.read_error().await.is_some());
    assert_eq!(log.lines().len(), 2, "{:?}", log.lines());
}

#[tokio::test]
async fn a_server_that_is_never_gone_logs_nothing() {
    let (log, _capturing) = Log::capture();
    let bench = Bench::new(Behaviour::Healthy);
    for behaviour in [Behaviour::Healthy, Behaviour::Fails(StoreErrorKind::Rejected)] {
        bench.set(behaviour);
        for _ in 0..10 {
            let _ = bench.read_error().await;
        }
    }
    assert_eq!(log.lines(), [""; 0]);
}

/// A rejection is an answer.
#[tokio::test]
async fn an_outage_ends_with_a_rejection() {
    let (log, _capturing) = Log::capture();
    let bench = Bench::new(DOWN);
    assert!(bench.read_error().await.is_some());
    bench.set(Behaviour::Fails(StoreErrorKind::Rejected));
    assert_eq!(bench.read_error().await, Some(StoreErrorKind::Rejected));
    assert_eq!(log.lines().len(), 2, "{:?}", log.lines());
}

/// Replies that were under way when the server went down must not end the outage: with many
/// requests under way, each would be a line.
#[tokio::test]
async fn a_late_reply_to_an_earlier_operation_does_not_end_an_outage() {
    let (log, _capturing) = Log::capture();
    let bench = Bench::new(Behaviour::Healthy);
    assert_eq!(bench.read_error().await, None);
    // A clearing takes a while, and each of its steps is an operation.
    let mut late = Box::pin(bench.shared.clear(bench.slot.prefix(), BUDGET));
    assert!((&mut late).now_or_never().is_none());
    bench.time.advance(BUDGET / 2);
    bench.set(DOWN);
    for _ in 0..3 {
        assert!(bench.read_error().await.is_some());
    }
    assert_eq!(log.lines().len(), 1, "{:?}", log.lines());
    bench.time.advance(BUDGET / 4);
    assert!(late.await.is_err(), "its second step finds the server gone");
    assert_eq!(log.lines().len(), 1, "{:?}", log.lines());
}
