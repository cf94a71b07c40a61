//! The database and the shared cache of a scenario, which outlive its services.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use testbed::{PostgresServer, Program, RedisReply, RedisServer, TempFolder};

use crate::client::Client;
use crate::service::{CEILING, Service, Setup};

/// An absent id that is read from a service with an open gate at its start.
pub(crate) const PROBE: i64 = 1 << 50;

/// A database of one test, with or without a shared cache.
pub(crate) struct Environment {
    database: Database,
    redis: Option<RedisServer>,
    /// What tells a service of others.
    link: &'static [&'static str],
}

/// The only instance, which refuses as soon as it is warm.
const SINGLE: [&str; 1] = ["--single-instance"];
/// A member of a fleet, which waits for the write window at its first start over an empty Redis.
const FLEET: [&str; 2] = ["--write-window", "6s"];

enum Database {
    Sqlite(TempFolder),
    Postgres(PostgresServer),
}

impl Environment {
    pub(crate) fn sqlite() -> Self {
        Self { database: Database::Sqlite(testbed::temp_folder()), redis: None, link: &[] }
    }

    pub(crate) fn sqlite_and_redis() -> Self {
        Self { redis: Some(RedisServer::start()), link: &SINGLE, ..Self::sqlite() }
    }

    pub(crate) fn postgres_and_redis() -> Self {
        let database = Database::Postgres(PostgresServer::start());
        Self { database, redis: Some(RedisServer::start()), link: &SINGLE }
    }

    /// Of several instances, which is what instances with a Redis are unless they are told otherwise.
    pub(crate) fn fleet() -> Self {
        Self { link: &FLEET, ..Self::postgres_and_redis() }
    }

    pub(crate) fn redis(&self) -> &RedisServer {
        self.redis.as_ref().unwrap()
    }

    pub(crate) fn has_redis(&self) -> bool {
        self.redis.is_some()
    }

    pub(crate) fn postgres(&self) -> &PostgresServer {
        match &self.database {
            Database::Postgres(postgres) => postgres,
            Database::Sqlite(_) => panic!("it is an SQLite file"),
        }
    }

    fn database_url(&self) -> String {
        match &self.database {
            Database::Sqlite(folder) => {
                format!("sqlite:{}", folder.path().join("products.db").display())
            }
            Database::Postgres(postgres) => postgres.url(),
        }
    }

    /// Starts a service and waits until it listens.
    pub(crate) fn start(&self, products: u64, flags: &[&str]) -> Service {
        let redis = self.redis.as_ref().filter(|_| !flags.contains(&"--redis-url"));
        let database_url = Some(self.database_url());
        let flags = &[self.link, flags].concat();
        Service::start(&Setup { database_url, redis, products, flags, ..Setup::default() })
    }

    /// Starts a service and waits until its gate is closed. With an open gate, waits until the
    /// service uses its local cache, which it does once it knows of no other writer.
    pub(crate) fn serve(&self, products: u64, flags: &[&str]) -> Service {
        let service = self.start(products, flags);
        if flags.contains(&"open") {
            service.until("caching", || {
                assert_eq!(service.product(PROBE), 404);
                service.count("/counts/local/null_hits") > 0
            });
        } else {
            service.until_closed();
        }
        service
    }

    /// The same database and shared cache for services that are declared to be the only one.
    pub(crate) fn declare_single(&mut self) {
        self.link = &SINGLE;
    }

    /// Starts a service that ends at once; returns what it said and its exit code.
    pub(crate) fn start_refused(&self, flags: &[&str]) -> (String, Option<i32>) {
        let redis = self.redis.as_ref();
        let database_url = Some(self.database_url());
        let flags = &[self.link, flags].concat();
        let (args, _folder) = Setup { database_url, redis, flags, ..Setup::default() }.args();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let binary = testbed::workspace_binary("product-detail", "product-detail");
        let program = Program::start(binary, &args, &[]);
        let status = program.wait(CEILING).unwrap();
        (program.stderr(), status.code())
    }

    /// Starts a service without guard and caches on the same database.
    pub(crate) fn start_unguarded(&self, products: u64) -> Service {
        let (database_url, flags) = (Some(self.database_url()), &["--no-guard"][..]);
        Service::start_ready(&Setup { database_url, products, flags, ..Setup::default() })
    }

    /// The names and tags of all slots in the shared cache: `V`, `N`, `L` or `M`.
    pub(crate) fn slots(&self) -> Vec<(String, String)> {
        let keys = self.redis().try_command(&["KEYS", "bloomgate:*"], CEILING).unwrap();
        let RedisReply::List(keys) = keys else { panic!("{keys}") };
        keys.into_iter()
            .map(|key| match key {
                RedisReply::Bulk(bytes) => bytes,
                other => panic!("{other}"),
            })
            // Those in braces are of the fleet, or of a single instance.
            .filter(|key| !key.starts_with(b"bloomgate:{"))
            .map(|key| {
                let ask: [&[u8]; 4] = [b"GETRANGE", &key, b"0", b"0"];
                let tag = self.redis().try_command(&ask, CEILING).unwrap().to_string();
                (String::from_utf8_lossy(&key).into_owned(), tag)
            })
            // The others have expired since they were listed.
            .filter(|(_, tag)| !tag.is_empty())
            .collect()
    }

    /// The leases and write intents in the shared cache.
    pub(crate) fn slots_in_use(&self) -> Vec<(String, String)> {
        let mut slots = self.slots();
        slots.retain(|(_, tag)| tag != "V" && tag != "N");
        slots
    }

    /// Waits until the shared cache holds no lease and no write intent.
    pub(crate) fn until_only_entries(&self) {
        let mut left = Vec::new();
        let started = Instant::now();
        while started.elapsed() < CEILING {
            left = self.slots_in_use();
            if left.is_empty() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("leases or write intents are left: {left:?}");
    }
}

/// Ends a service with SIGTERM.
pub(crate) fn stop(service: &Service) {
    let status = service.program.terminate();
    assert!(status.success(), "{status}:\n{}", service.program.stderr());
    assert_no_panic(service);
}

/// Stops the other threads of a test when it ends, also when it fails.
pub(crate) struct StopOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

pub(crate) fn assert_no_panic(service: &Service) {
    let log = service.program.stderr();
    assert!(!log.contains("panicked"), "{log}");
}

/// Fails unless the service answers as the unguarded one for each id from 1 to `last`. Returns the
/// number of products.
pub(crate) fn assert_truthful(service: &Service, unguarded: &Service, last: i64) -> usize {
    let (mut guarded, mut truth) = (Client::of(service), Client::of(unguarded));
    let mut found = 0;
    for id in 1..=last {
        let (said, is) = (guarded.get(id), truth.get(id));
        assert_eq!((said.status, said.text()), (is.status, is.text()), "product {id}");
        found += usize::from(said.status == 200);
    }
    found
}

/// Pseudorandom numbers, the same for the same seed (SplitMix64).
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// One of `first..=last`.
    pub(crate) fn id(&mut self, first: i64, last: i64) -> i64 {
        first + (self.next() % (last - first + 1) as u64) as i64
    }

    /// An id without a product.
    pub(crate) fn absent_id(&mut self) -> i64 {
        (1 << 40) + (self.next() >> 2) as i64
    }
}
