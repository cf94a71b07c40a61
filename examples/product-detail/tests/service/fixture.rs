//! The service as a program, with its HTTP interface.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use testbed::net::{self, Reply};
use testbed::{Program, TempFolder, temp_folder};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_product-detail");
/// Longer than anything takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(30);
pub(crate) const JSON: (&str, &str) = ("Content-Type", "application/json");
pub(crate) const PRODUCT: &str = r#"{"name":"Tea","price_cents":350,"description":"Green."}"#;

/// The service on a port of its own, with a data folder of its own.
pub(crate) struct Service {
    pub(crate) program: Program,
    pub(crate) url: String,
    pub(crate) folder: TempFolder,
}

impl Service {
    /// Starts it with `args` on top, and waits until it listens.
    pub(crate) fn start(args: &[&str]) -> Self {
        let folder = temp_folder();
        let (program, url) = start_in(folder.path(), args);
        Self { program, url, folder }
    }

    /// The same, waiting until it is ready.
    pub(crate) fn ready(args: &[&str]) -> Self {
        let service = Self::start(args);
        service.until_ready();
        service
    }

    pub(crate) fn until_ready(&self) {
        until("the service is ready", || self.get("/readyz").status == 200);
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        net::get(&format!("{}{path}", self.url))
    }

    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> Reply {
        let url = format!("{}{path}", self.url);
        net::request(method, &url, &[JSON], body.as_bytes())
    }

    /// The document at `/guard`.
    pub(crate) fn status(&self) -> Value {
        json(&self.get("/guard"))
    }

    /// One number of that document, such as `/counts/loader/loads`.
    pub(crate) fn number(&self, pointer: &str) -> u64 {
        let status = self.status();
        let number = status.pointer(pointer).and_then(Value::as_u64);
        number.unwrap_or_else(|| panic!("no number {pointer} in {status}"))
    }
}

/// Starts the service with its data folder in `folder`.
pub(crate) fn start_in(folder: &Path, args: &[&str]) -> (Program, String) {
    let data = folder.join("data");
    let data = data.to_str().expect("a path of ASCII");
    let mut all = vec!["--listen", "127.0.0.1:0", "--data-dir", data];
    all.extend(args);
    let program = Program::start_in(folder, BINARY, &all, &[]);
    let line = program.wait_for_line("", LONG);
    let line = line.unwrap_or_else(|| panic!("no line: {}", program.stderr()));
    let url = line.strip_prefix("listening on ");
    let url = url.unwrap_or_else(|| panic!("the first line is {line:?}"));
    (program, url.to_owned())
}

pub(crate) fn json(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap_or_else(|error| panic!("{error}: {}", reply.text()))
}

/// Waits until something is so.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Asserts that an answer is a problem document with this status.
pub(crate) fn assert_problem(reply: &Reply, status: u16) {
    assert_eq!(reply.status, status, "{}", reply.text());
    let content_type = reply.header("content-type");
    assert_eq!(content_type, Some("application/problem+json"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let document = json(reply);
    assert_eq!(document["status"], status);
    assert_eq!(document["type"], "about:blank");
    assert!(document["title"].is_string() && document["detail"].is_string());
    let retry = (status == 503).then_some("1");
    assert_eq!(reply.header("retry-after"), retry);
}
