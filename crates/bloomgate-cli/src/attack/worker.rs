//! The task of one connection: it sends, waits and counts until the traffic ends.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Empty;
use hyper::HeaderMap;
use hyper::Request;

use super::http::connection::{EmptyRequest, HttpConnection, Outcome};
use super::http::template::Template;
use super::ids::id::Id;
use super::pacing::Pace;
use super::statistics::{Statistics, locked};
use super::traffic::{PlannedRequest, Traffic};

/// Wait after the first failure to connect; doubled with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(10);
const MAX_WAIT: Duration = Duration::from_secs(1);
/// Failures in a row without an answer after which a connection gives up, about 6 s after the
/// first if each attempt fails at once.
const MAX_FAILURES: u32 = 12;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct WorkerContext {
    pub(crate) traffic: Traffic,
    pub(crate) pace: Pace,
    pub(crate) template: Template,
    pub(crate) headers: HeaderMap,
    pub(crate) address: SocketAddr,
    pub(crate) timeout: Duration,
}

impl WorkerContext {
    fn request(&self, id: &Id) -> Result<Box<EmptyRequest>, hyper::http::Error> {
        let uri = self.template.fill(id)?;
        let mut request = Request::new(Empty::<Bytes>::new());
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers.clone();
        Ok(Box::new(request))
    }
}

/// Works until the traffic is over or the server can't be reached any more.
///
/// The statistics are kept outside the task, so that it survives when the task is stopped.
pub(crate) async fn run(context: Arc<WorkerContext>, statistics: Arc<Mutex<Statistics>>) {
    let mut worker = Worker { context, statistics, connection: None, failures: 0 };
    // Connect first, then take a request: a connection that fails to open loses no request.
    while worker.connected().await && worker.context.pace.due().await {
        let Some(next) = worker.context.traffic.next() else {
            break;
        };
        if next.index + 1 == worker.context.traffic.total() {
            worker.context.pace.end();
        }
        worker.send(next).await;
    }
}

struct Worker {
    context: Arc<WorkerContext>,
    statistics: Arc<Mutex<Statistics>>,
    connection: Option<HttpConnection>,
    /// Failures in a row, since the last answer.
    failures: u32,
}

impl Worker {
    /// Opens a connection unless there is one; `false` when the run is over or the server unreachable.
    async fn connected(&mut self) -> bool {
        while self.connection.as_ref().is_none_or(HttpConnection::is_closed) {
            self.connection = None;
            if self.context.traffic.is_over() || !self.reconnect().await {
                return false;
            }
        }
        true
    }

    /// Tries to connect once, after a wait that grows with the failures in a row; `false` when there
    /// were too many.
    async fn reconnect(&mut self) -> bool {
        if self.failures >= MAX_FAILURES {
            return false;
        }
        if let Some(wait) = wait_after(self.failures) {
            tokio::time::sleep(wait).await;
        }
        match HttpConnection::open(self.context.address, self.context.timeout).await {
            Ok(connection) => {
                self.connection = Some(connection);
                locked(&self.statistics).connects += 1;
            }
            Err(_) => {
                self.failures += 1;
                locked(&self.statistics).connect_failures += 1;
            }
        }
        true
    }

    /// Sends one request, on another connection if the server closed this one before.
    async fn send(&mut self, next: PlannedRequest) {
        let Ok(mut request) = self.context.request(&next.id) else {
            // The template was checked with an id in place, so every id fits.
            debug_assert!(false, "the path of id {:?} can't be sent", next.id);
            return;
        };
        loop {
            let Some(connection) = self.connection.as_mut() else {
                if self.reconnect().await {
                    continue;
                }
                return;
            };
            let now = Instant::now();
            let latency_start = self.context.pace.latency_start(next.index, now);
            locked(&self.statistics).of(next.kind).sent += 1;
            let outcome = connection.exchange(request, now).await;
            let answers = connection.answers();
            let mut statistics = locked(&self.statistics);
            let kind = statistics.of(next.kind);
            match outcome {
                Outcome::Answered(status) => {
                    kind.answered(status, latency_start.elapsed());
                    self.failures = 0;
                    return;
                }
                Outcome::Unsent(back) => {
                    kind.sent -= 1;
                    // Closing an idle connection is normal; closing one without any answer is a failure.
                    self.failures += u32::from(answers == 0);
                    self.connection = None;
                    request = back;
                }
                Outcome::Broken => {
                    kind.broken += 1;
                    self.failures += 1;
                    self.connection = None;
                    return;
                }
                Outcome::TimedOut => {
                    kind.timeouts += 1;
                    self.connection = None;
                    return;
                }
            }
        }
    }
}

/// The wait before connecting again after a number of failures in a row.
fn wait_after(failures: u32) -> Option<Duration> {
    let doublings = failures.checked_sub(1)?;
    Some(FIRST_WAIT.saturating_mul(1 << doublings.min(10)).min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        assert_eq!(wait_after(0), None);
        assert_eq!(wait_after(1), Some(Duration::from_millis(10)));
        assert_eq!(wait_after(2), Some(Duration::from_millis(20)));
        assert_eq!(wait_after(7), Some(Duration::from_millis(640)));
        assert_eq!(wait_after(8), Some(MAX_WAIT));
        assert_eq!(wait_after(u32::MAX), Some(MAX_WAIT));
    }
}
