//! A server under test: its process, its address and its processor time.

use std::time::Duration;

use testbed::{Program, TempFolder, net};

use crate::REPEATED_URL;

/// The products of the example service.
const PRODUCTS: &str = "1000";

/// A running server.
pub(crate) struct Server {
    program: Program,
    url: String,
}

impl Server {
    /// This program, serving a variant; [`crate::REPEATER`] repeats `repeated`.
    pub(crate) fn start(variant: &str, repeated: &str) -> Self {
        let this = std::env::current_exe().expect("this program");
        Self::new(Program::start(this, &["--serve", variant], &[(REPEATED_URL, repeated)]))
    }

    /// The example service, once its gate refuses.
    pub(crate) fn start_example(folder: &TempFolder) -> Self {
        let data = folder.path().join("data").display().to_string();
        let args = ["--listen", "127.0.0.1:0", "--data-dir", &data, "--seed", PRODUCTS];
        let binary = testbed::workspace_binary("product-detail", "product-detail");
        let server = Self::new(Program::start(binary, &args, &[]));
        for _ in 0..600 {
            let status = net::get(&server.guard_url()).body;
            let status: serde_json::Value = serde_json::from_slice(&status).expect("a document");
            if status["gate"]["state"] == "closed" {
                return server;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("its gate stays open: {}", server.program.stderr());
    }

    fn new(program: Program) -> Self {
        let line = program.wait_for_line("listening on ", Duration::from_secs(120));
        let line = line.unwrap_or_else(|| panic!("it didn't start: {}", program.stderr()));
        let url = line.trim_start_matches("listening on ").trim().to_owned();
        Self { program, url }
    }

    pub(crate) fn product_url(&self, id: &str) -> String {
        format!("{}/products/{id}", self.url)
    }

    /// Where the example tells the state of its guard.
    pub(crate) fn guard_url(&self) -> String {
        format!("{}/guard", self.url)
    }

    /// Processor time of its threads so far in µs, which the scheduler counts in nanoseconds.
    pub(crate) fn cpu_micros(&self) -> f64 {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.program.pid()));
        let nanos = threads.expect("the server's threads").filter_map(|thread| {
            // A thread may end meanwhile; those that serve don't.
            let times = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            let time = times.split_whitespace().next().expect("the time that it ran");
            Some(time.parse::<u64>().expect("nanoseconds"))
        });
        nanos.sum::<u64>() as f64 / 1e3
    }
}
