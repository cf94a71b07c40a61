//! The guard's counters, read over HTTP before and after the traffic.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::header::{ACCEPT, HeaderValue};
use hyper::{HeaderMap, Request};
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::header::RequestHeader;
use super::http_connection::{EmptyRequest, HttpConnection};
use super::target::Target;

/// The largest document that is read, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Why the document can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum StatusError {
    /// The server could not be asked.
    #[error("no answer")]
    Transport(#[from] io::Error),
    /// The server answered something else than 200.
    #[error("answered {0} instead of 200")]
    Status(u16),
    /// The answer lacks the counters.
    #[error("not the status document of a guard")]
    Document(#[from] serde_json::Error),
}

/// The part of the status document that is of interest here.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct GuardStatus {
    enabled: Option<bool>,
    counts: Counts,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
struct Counts {
    refused: u64,
    loader: LoaderCounts,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
struct LoaderCounts {
    absent: u64,
    loads: Option<u64>,
    errors: Option<u64>,
    shed: Option<u64>,
    timeouts: Option<u64>,
}

/// How the counters changed during the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct GuardChange {
    pub(crate) absent_loads: u64,
    pub(crate) absent_loads_per_1000: f64,
    pub(crate) refused: u64,
    pub(crate) refused_per_1000: f64,
    pub(crate) loads: Option<u64>,
    pub(crate) errors: Option<u64>,
    pub(crate) shed: Option<u64>,
    pub(crate) timeouts: Option<u64>,
    pub(crate) enabled: Option<bool>,
}

impl GuardStatus {
    fn parse(document: &[u8]) -> Result<Self, StatusError> {
        Ok(serde_json::from_slice(document)?)
    }

    /// The change from `self` to `after`, per 1,000 of `attack_requests`; `None` if a counter went
    /// backwards, as after a restart.
    pub(crate) fn change(&self, after: &Self, attack_requests: u64) -> Option<GuardChange> {
        // An absent counter stays absent; a counter that fell spoils all.
        let optional = |before: Option<u64>, after: Option<u64>| match (before, after) {
            (Some(before), Some(after)) => after.checked_sub(before).map(Some),
            _ => Some(None),
        };
        let (old, new) = (&self.counts.loader, &after.counts.loader);
        let absent_loads = new.absent.checked_sub(old.absent)?;
        let refused = after.counts.refused.checked_sub(self.counts.refused)?;
        Some(GuardChange {
            absent_loads,
            absent_loads_per_1000: per_1000(absent_loads, attack_requests),
            refused,
            refused_per_1000: per_1000(refused, attack_requests),
            loads: optional(old.loads, new.loads)?,
            errors: optional(old.errors, new.errors)?,
            shed: optional(old.shed, new.shed)?,
            timeouts: optional(old.timeouts, new.timeouts)?,
            enabled: after.enabled,
        })
    }
}

fn per_1000(count: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { count as f64 * 1000.0 / of as f64 }
}

/// Where the document is, resolved and checked.
#[derive(Clone, Debug)]
pub(crate) struct GuardReader {
    address: SocketAddr,
    headers: HeaderMap,
    path: hyper::Uri,
    timeout: Duration,
}

impl GuardReader {
    /// Reads from `target` at `address`.
    pub(crate) fn new(
        target: &Target,
        address: SocketAddr,
        headers: &[RequestHeader],
        timeout: Duration,
    ) -> Result<Self, Error> {
        let path = target
            .path()
            .parse()
            .map_err(|_| Error::flag("--guard-url", "the path can't be sent; percent-encode it"))?;
        let mut headers = target.headers(headers)?;
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        Ok(Self { address, headers, path, timeout })
    }

    /// Asks once, over a connection of its own.
    pub(crate) async fn read(&self) -> Result<GuardStatus, StatusError> {
        let mut request: EmptyRequest = Request::new(Empty::<Bytes>::new());
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = self.headers.clone();
        let mut connection = HttpConnection::open(self.address, self.timeout).await?;
        match connection.read(request, MAX_BYTES).await? {
            (200, document) => GuardStatus::parse(&document),
            (status, _) => Err(StatusError::Status(status)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = r#"{"namespace":"product","enabled":true,"counts":{"refused":10,
        "found":3,"loader":{"loads":7,"absent":2,"errors":0,"shed":0,"timeouts":0}}}"#;
    const AFTER: &str = r#"{"enabled":true,"counts":{"refused":1009,
        "loader":{"loads":20,"absent":4,"errors":1,"shed":2,"timeouts":3}}}"#;

    fn status(document: &str) -> GuardStatus {
        GuardStatus::parse(document.as_bytes()).unwrap()
    }

    #[test]
    fn changes_are_per_thousand_attack_requests() {
        let change = status(BEFORE).change(&status(AFTER), 2000).unwrap();
        assert_eq!((change.absent_loads, change.absent_loads_per_1000), (2, 1.0));
        assert_eq!((change.refused, change.refused_per_1000), (999, 499.5));
        assert_eq!((change.loads, change.errors), (Some(13), Some(1)));
        assert_eq!((change.shed, change.timeouts, change.enabled), (Some(2), Some(3), Some(true)));
    }

    #[test]
    fn no_attack_requests_give_no_infinity() {
        let change = status(BEFORE).change(&status(AFTER), 0).unwrap();
        assert_eq!((change.absent_loads_per_1000, change.refused_per_1000), (0.0, 0.0));
    }

    #[test]
    fn a_restart_gives_no_figures() {
        assert_eq!(status(AFTER).change(&status(BEFORE), 1000), None);
    }

    #[test]
    fn extra_counters_may_be_missing_but_not_the_two_that_matter() {
        let least = r#"{"counts":{"refused":1,"loader":{"absent":2}}}"#;
        let change = status(least).change(&status(least), 10).unwrap();
        assert_eq!((change.loads, change.enabled, change.refused), (None, None, 0));
        for wrong in [
            "",
            "[]",
            "{}",
            r#"{"counts":{"loader":{"absent":2}}}"#,
            r#"{"counts":{"refused":1}}"#,
            r#"{"counts":{"refused":1,"loader":{}}}"#,
            r#"{"counts":{"refused":-1,"loader":{"absent":2}}}"#,
        ] {
            assert!(GuardStatus::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
