//! The example service, started and asked by a scenario.

use std::time::{Duration, Instant};

use serde_json::Value;
use testbed::{PostgresServer, Program, RedisServer, TempFolder, net};

/// A limit that only a hang reaches, also on a busy machine.
pub(crate) const CEILING: Duration = Duration::from_secs(60);

/// The service's settings that scenarios change.
#[derive(Default)]
pub(crate) struct Setup<'a> {
    pub(crate) postgres: Option<&'a PostgresServer>,
    /// A database instead of the one of `postgres`; see `PostgresServer::create_database`.
    pub(crate) database_url: Option<String>,
    pub(crate) redis: Option<&'a RedisServer>,
    /// The number of demonstration products that the service adds to an empty table.
    pub(crate) products: u64,
    pub(crate) flags: &'a [&'a str],
    /// Variables of its environment, as names and values.
    pub(crate) envs: &'a [(&'a str, &'a str)],
}

impl Setup<'_> {
    /// The arguments of such a service, and the folder that its data folder is made in.
    pub(crate) fn args(&self) -> (Vec<String>, TempFolder) {
        let folder = testbed::temp_folder();
        let mut args = vec!["--listen".to_owned(), "127.0.0.1:0".to_owned()];
        let data = folder.path().join("data").display().to_string();
        args.extend(["--data-dir".to_owned(), data]);
        args.extend(["--seed".to_owned(), self.products.to_string()]);
        let database = self.database_url.clone().or(self.postgres.map(PostgresServer::url));
        if let Some(url) = database {
            args.extend(["--database-url".to_owned(), url]);
        }
        if let Some(redis) = self.redis {
            args.extend(["--redis-url".to_owned(), redis.url()]);
        }
        args.extend(self.flags.iter().map(|flag| (*flag).to_owned()));
        (args, folder)
    }
}

/// A running service with its own data folder.
pub(crate) struct Service {
    pub(crate) program: Program,
    pub(crate) url: String,
    args: Vec<String>,
    envs: Vec<(String, String)>,
    folder: TempFolder,
}

impl Service {
    /// Starts the service and waits until it listens.
    pub(crate) fn start(setup: &Setup<'_>) -> Self {
        let (args, folder) = setup.args();
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self::launch(args, setup.envs.iter().map(own).collect(), folder)
    }

    fn launch(args: Vec<String>, envs: Vec<(String, String)>, folder: TempFolder) -> Self {
        let binary = testbed::workspace_binary("product-detail", "product-detail");
        let flags: Vec<&str> = args.iter().map(String::as_str).collect();
        let variables: Vec<(&str, &str)> =
            envs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let program = Program::start(binary, &flags, &variables);
        let line = program.wait_for_line("listening on ", CEILING);
        let line = line.unwrap_or_else(|| panic!("it doesn't listen:\n{}", program.stderr()));
        let url = line.trim_start_matches("listening on ").trim().to_owned();
        Self { program, url, args, envs, folder }
    }

    /// Starts the service and waits until `/readyz` answers 200.
    pub(crate) fn start_ready(setup: &Setup<'_>) -> Self {
        let service = Self::start(setup);
        service.until("ready", || service.get("/readyz").status == 200);
        service
    }

    /// Kills the service with `SIGKILL` and starts it again on the same data.
    pub(crate) fn kill_and_restart(self) -> Self {
        self.program.kill9();
        Self::launch(self.args, self.envs, self.folder)
    }

    pub(crate) fn get(&self, path: &str) -> net::Reply {
        net::get(&format!("{}{path}", self.url))
    }

    pub(crate) fn product(&self, id: i64) -> u16 {
        self.get(&format!("/products/{id}")).status
    }

    /// Creates a product and returns its id.
    pub(crate) fn create(&self, name: &str) -> i64 {
        let reply = self.post(name);
        assert_eq!(reply.status, 201, "{}", reply.text());
        let product: Value = serde_json::from_slice(&reply.body).unwrap();
        product["id"].as_i64().unwrap()
    }

    pub(crate) fn post(&self, name: &str) -> net::Reply {
        let json = [("content-type", "application/json")];
        net::request(
            "POST",
            &format!("{}/products", self.url),
            &json,
            product_json(name).as_bytes(),
        )
    }

    pub(crate) fn put(&self, id: i64, name: &str) -> net::Reply {
        let json = [("content-type", "application/json")];
        net::request(
            "PUT",
            &format!("{}/products/{id}", self.url),
            &json,
            product_json(name).as_bytes(),
        )
    }

    pub(crate) fn delete(&self, id: i64) -> net::Reply {
        net::request("DELETE", &format!("{}/products/{id}", self.url), &[], b"")
    }

    /// The status document.
    pub(crate) fn guard(&self) -> Value {
        serde_json::from_slice(&self.get("/guard").body).unwrap()
    }

    /// A count of the status document, by JSON pointer.
    pub(crate) fn count(&self, pointer: &str) -> u64 {
        let guard = self.guard();
        let value = guard.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {guard}"));
        value.as_u64().unwrap_or_else(|| panic!("{pointer} is {value}"))
    }

    /// Waits until `condition` holds; fails with the status and the log after [`CEILING`].
    pub(crate) fn until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let started = Instant::now();
        while !condition() {
            assert!(
                started.elapsed() < CEILING,
                "not {what} after {CEILING:?}; status {}; log:\n{}",
                net::try_request("GET", &format!("{}/guard", self.url), &[], b"")
                    .map_or_else(|error| error.to_string(), |reply| reply.text()),
                self.program.stderr()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends many requests one after the other. The service takes network events in the order in
    /// which they come, so that after this it has seen the requests and disconnects before.
    pub(crate) fn until_it_has_served_others(&self) {
        for _ in 0..50 {
            assert_eq!(self.get("/healthz").status, 200);
        }
    }

    pub(crate) fn gate_is_closed(&self) -> bool {
        self.guard()["gate"]["state"] == "closed"
    }

    pub(crate) fn until_closed(&self) {
        self.until("closed", || self.gate_is_closed());
    }

    /// Waits until no load and no write is in flight.
    pub(crate) fn until_idle(&self) {
        self.until("idle", || {
            let guard = self.guard();
            guard["in_flight"]["loads"] == 0 && guard["in_flight"]["writes"] == 0
        });
    }
}

/// The JSON of a product, as POST and PUT take it.
pub(crate) fn product_json(name: &str) -> String {
    serde_json::json!({"name": name, "price_cents": 100, "description": "d"}).to_string()
}
