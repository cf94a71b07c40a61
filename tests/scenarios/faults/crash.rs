//! The service, killed while it writes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use testbed::{PostgresServer, net};

use crate::database_lock::DatabaseSession;
use crate::outcome_log::name_in;
use crate::service::{CEILING, Service, Setup, product_json};
use crate::traffic::{EXACT, absent_id};

/// Commits of the service that wait for a standby server that doesn't exist. A transaction that
/// waits so is durable, and is in progress for all other sessions.
pub(crate) struct HeldCommits<'a> {
    postgres: &'a PostgresServer,
    session: DatabaseSession,
}

impl<'a> HeldCommits<'a> {
    /// Holds back all commits from now on.
    ///
    /// The checkpointer switches the waiting on a moment after the settings are reloaded. So a
    /// probe commits until one of its commits waits: from then on all commits do.
    pub(crate) fn hold(postgres: &'a PostgresServer) -> Self {
        postgres.psql("CREATE TABLE IF NOT EXISTS commit_probe (id int)");
        postgres.psql("ALTER SYSTEM SET synchronous_standby_names = 'missing'");
        postgres.psql("SELECT pg_reload_conf()");
        let mut session = DatabaseSession::open(&postgres.url());
        let waiting = "SELECT count(*) FROM pg_stat_activity \
                       WHERE wait_event = 'SyncRep' AND query LIKE '%commit_probe%'";
        let started = Instant::now();
        thread::scope(|scope| {
            let probe = scope.spawn(|| {
                // The commit that waits ends with its session.
                let probe = "INSERT INTO commit_probe VALUES (1)";
                while postgres.try_psql_at(&postgres.url(), probe, CEILING).is_ok() {}
            });
            while session.integer(waiting) == 0 {
                assert!(started.elapsed() < CEILING && !probe.is_finished(), "no commit waits");
                thread::sleep(Duration::from_millis(2));
            }
            session.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE wait_event = 'SyncRep' AND query LIKE '%commit_probe%'",
            );
        });
        let mut held = Self { postgres, session };
        assert_eq!(held.count(), 0);
        held
    }

    /// The number of the service's commits that wait.
    pub(crate) fn count(&mut self) -> i64 {
        self.session.integer(
            "SELECT count(*) FROM pg_stat_activity \
             WHERE wait_event = 'SyncRep' AND application_name = 'product-detail'",
        )
    }

    /// Sends one write, and returns once its commit waits, with the thread that reads the answer.
    pub(crate) fn start_write(
        &mut self,
        service: &Service,
        method: &'static str,
        path: &str,
        name: &str,
    ) -> thread::JoinHandle<std::io::Result<net::Reply>> {
        let (url, body) = (format!("{}{path}", service.url), product_json(name));
        let json = [("content-type", "application/json")];
        let write = thread::spawn(move || net::try_request(method, &url, &json, body.as_bytes()));
        service.until("held in its commit", || {
            assert!(!write.is_finished(), "the write was answered, though no commit ends");
            self.count() == 1
        });
        write
    }

    /// Ends the connections whose commits wait.
    pub(crate) fn terminate(&mut self) {
        self.session.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE wait_event = 'SyncRep' AND application_name = 'product-detail'",
        );
    }

    /// Lets all commits end.
    pub(crate) fn release(self) {
        self.postgres.psql("ALTER SYSTEM RESET synchronous_standby_names");
        self.postgres.psql("SELECT pg_reload_conf()");
    }
}

fn start(postgres: &PostgresServer) -> Service {
    let setup =
        Setup { postgres: Some(postgres), products: 1_000, flags: &EXACT, ..Setup::default() };
    let service = Service::start_ready(&setup);
    service.until_closed();
    service
}

/// Kills the service while the COMMIT of a product's write waits, reads the product for longer than
/// a warm-up takes, then lets the COMMIT end. `check` gets each reply, and whether the write was
/// visible in the database before the read.
fn killed_in_commit(
    method: &'static str,
    existing: Option<i64>,
    check: impl Fn(&net::Reply, bool),
) {
    let postgres = PostgresServer::start();
    let service = start(&postgres);
    let mut held = HeldCommits::hold(&postgres);
    let path = existing.map_or("/products".to_owned(), |id| format!("/products/{id}"));
    let write = held.start_write(&service, method, &path, "held");
    let last = || postgres.psql("SELECT last_value FROM products_id_seq").parse().unwrap();
    let id = existing.unwrap_or_else(last);
    let service = service.kill_and_restart();
    assert!(write.join().unwrap().is_err(), "an answer before the commit ended");
    let mut session = DatabaseSession::open(&postgres.url());
    let visible = format!("SELECT count(*) FROM products WHERE name = 'held' AND id = {id}");
    let mut read = || {
        let visible = session.integer(&visible) == 1;
        check(&service.get(&format!("/products/{id}")), visible);
        visible
    };
    for _ in 0..30 {
        assert_eq!(held.count(), 1);
        assert!(!read());
        let guard = service.guard();
        assert_eq!(guard["gate"]["state"], "open", "{guard}");
        assert_eq!(guard["gate"]["reason"], "warming", "{guard}");
        thread::sleep(Duration::from_millis(50));
    }
    held.release();
    service.until("visible", &mut read);
    for _ in 0..20 {
        assert!(read());
    }
    service.until_closed();
    assert!(read());
    assert_eq!(service.product(absent_id()), 404);
    assert!(service.count("/counts/refused") > 0);
}

#[test]
fn case_55_a_row_whose_commit_outlives_its_service_is_never_refused() {
    killed_in_commit("POST", None, |reply, visible| {
        let right = if visible { 200 } else { 404 };
        // It may have become visible since then.
        assert!(
            reply.status == right || reply.status == 200,
            "visible: {visible}; {} {}",
            reply.status,
            reply.text()
        );
    });
}

#[test]
fn case_55_a_change_whose_commit_outlives_its_service_is_not_hidden_by_a_cache() {
    killed_in_commit("PUT", Some(500), |reply, visible| {
        assert_eq!(reply.status, 200);
        assert!(name_in(reply) == "held" || !visible, "{}", reply.text());
    });
}

/// Kills the service during many POSTs, several times; no row is refused afterwards.
fn killed_at_random(database: &str) {
    const THREADS: usize = 10;
    let mut service = Service::start_ready(&Setup {
        database_url: Some(database.to_owned()),
        products: 1_000,
        ..Setup::default()
    });
    let mut session = DatabaseSession::open(database);
    let created = Mutex::new(Vec::new());
    let names = AtomicU64::new(0);
    for round in 0..4_u64 {
        let posted = AtomicU64::new(0);
        let url = format!("{}/products", service.url);
        service = thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    loop {
                        let name = format!("posted {}", names.fetch_add(1, Ordering::Relaxed));
                        let json = [("content-type", "application/json")];
                        posted.fetch_add(1, Ordering::Relaxed);
                        let reply =
                            net::try_request("POST", &url, &json, product_json(&name).as_bytes());
                        let Ok(reply) = reply else { return };
                        if reply.status == 201 {
                            let product: Value = serde_json::from_slice(&reply.body).unwrap();
                            created.lock().unwrap().push((product["id"].as_i64().unwrap(), name));
                        }
                    }
                });
            }
            while posted.load(Ordering::Relaxed) < 40 + 7 * round {
                thread::sleep(Duration::from_millis(1));
            }
            service.kill_and_restart()
        });
        let rows = session.products_from(1_001);
        for row in created.lock().unwrap().iter() {
            assert!(rows.contains(row), "{row:?} was created and is missing");
        }
        for (id, name) in &rows {
            let reply = service.get(&format!("/products/{id}"));
            assert_eq!(reply.status, 200, "{name}: {}", reply.text());
        }
        service.until_closed();
        // Including the rows whose commit ended later.
        let rows = session.products_from(1_001);
        assert!(rows.len() >= 20 * (round as usize + 1), "{}", rows.len());
        for (id, name) in &rows {
            let reply = service.get(&format!("/products/{id}"));
            assert_eq!((reply.status, &name_in(&reply)), (200, name), "{}", reply.text());
        }
    }
}

#[test]
fn case_55_no_row_is_refused_after_kills_in_the_middle_of_writes_to_sqlite() {
    let folder = testbed::temp_folder();
    killed_at_random(&format!("sqlite:{}", folder.path().join("products.db").display()));
}

#[test]
fn case_55_no_row_is_refused_after_kills_in_the_middle_of_writes_to_postgres() {
    killed_at_random(&PostgresServer::shared().create_database());
}
