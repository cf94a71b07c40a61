//! The service is killed while it writes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use testbed::{PostgresServer, net};

use crate::database_lock::DatabaseSession;
use crate::outcome_log::name_in;
use crate::service::{Service, Setup, product_json};
use crate::traffic::{EXACT, absent_id};

/// Makes every COMMIT wait for a standby that doesn't exist, or no longer. A transaction that waits
/// so is durable, and in progress for everyone else.
pub(crate) fn hold_commits(postgres: &PostgresServer, hold: bool) {
    let set = "ALTER SYSTEM SET synchronous_standby_names = 'nobody'";
    postgres.psql(if hold { set } else { "ALTER SYSTEM RESET synchronous_standby_names" });
    postgres.psql("SELECT pg_reload_conf()");
}

/// The backends whose COMMIT waits.
pub(crate) fn held_commits(postgres: &PostgresServer) -> Vec<String> {
    let pids = postgres.psql("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    pids.lines().map(str::to_owned).collect()
}

/// Sends a write again and again until its COMMIT waits: a backend takes a moment to hear of the
/// new setting. Returns the thread that waits for the last answer.
pub(crate) fn write_until_held(
    service: &Service,
    postgres: &PostgresServer,
    method: &'static str,
    path: &str,
    name: &str,
) -> thread::JoinHandle<std::io::Result<net::Reply>> {
    loop {
        let (url, body) = (format!("{}{path}", service.url), product_json(name));
        let json = [("content-type", "application/json")];
        let write = thread::spawn(move || net::try_request(method, &url, &json, body.as_bytes()));
        while !write.is_finished() {
            if !held_commits(postgres).is_empty() {
                return write;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn start(postgres: &PostgresServer) -> Service {
    let setup =
        Setup { postgres: Some(postgres), products: 1_000, flags: &EXACT, ..Setup::default() };
    let service = Service::start_ready(&setup);
    service.until_closed();
    service
}

/// Kills the service while the COMMIT of a product's write waits, looks at the product until the
/// gate could have closed, then lets the COMMIT go. `check` is told whether the write was visible
/// in the database before the product was asked for.
fn killed_in_commit(
    method: &'static str,
    existing: Option<i64>,
    check: impl Fn(&net::Reply, bool),
) {
    let postgres = PostgresServer::start();
    let service = start(&postgres);
    hold_commits(&postgres, true);
    let path = existing.map_or("/products".to_owned(), |id| format!("/products/{id}"));
    let write = write_until_held(&service, &postgres, method, &path, "held");
    let last = || postgres.psql("SELECT last_value FROM products_id_seq").parse().unwrap();
    let id = existing.unwrap_or_else(last);
    let service = service.kill_and_restart();
    assert!(write.join().unwrap().is_err(), "nobody could have answered");
    let visible = format!("SELECT count(*) FROM products WHERE name = 'held' AND id = {id}");
    let look = || {
        let visible = postgres.psql(&visible) == "1";
        check(&service.get(&format!("/products/{id}")), visible);
        visible
    };
    for _ in 0..30 {
        assert_eq!(held_commits(&postgres).len(), 1);
        assert!(!look());
        let guard = service.guard();
        assert_eq!(guard["gate"]["state"], "open", "{guard}");
        assert_eq!(guard["gate"]["reason"], "warming", "{guard}");
        thread::sleep(Duration::from_millis(100));
    }
    hold_commits(&postgres, false);
    service.until("visible", look);
    for _ in 0..20 {
        assert!(look());
    }
    service.until_closed();
    assert!(look());
    assert_eq!(service.product(absent_id()), 404);
    assert!(service.count("/counts/refused") > 0);
}

#[test]
fn case_55_a_row_whose_commit_outlives_its_service_is_never_refused() {
    killed_in_commit("POST", None, |reply, visible| {
        let right = if visible { 200 } else { 404 };
        // It may have become visible in between.
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

/// Kills the service in the middle of many POSTs, several times; no row is refused afterwards.
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
            assert!(rows.contains(row), "{row:?} was created and is gone");
        }
        for (id, name) in &rows {
            let reply = service.get(&format!("/products/{id}"));
            assert_eq!(reply.status, 200, "{name}: {}", reply.text());
        }
        service.until_closed();
        // Also those whose commit came later.
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
