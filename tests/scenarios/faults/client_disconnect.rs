//! Clients that go away in the middle.

use std::thread;
use std::time::{Duration, Instant};

use testbed::PostgresServer;
use testbed::net::Conn;

use crate::database_lock::{DatabaseSession, lock_products};
use crate::outcome_log::name_in;
use crate::service::{Service, Setup, product_json};
use crate::traffic::{EXACT, HANG};

/// Sends a write and doesn't wait for its answer.
pub(crate) fn send_write(service: &Service, method: &str, path: &str, name: &str) -> Conn {
    let mut conn = Conn::open(&service.url);
    let body = product_json(name);
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    conn.send(request.as_bytes()).unwrap();
    conn
}

/// Waits until so many statements of the service wait for a lock.
pub(crate) fn until_blocked(postgres: &PostgresServer, database: &str, statements: usize) {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
               AND application_name = 'product-detail' AND wait_event_type = 'Lock'";
    let started = Instant::now();
    while postgres.psql_at(database, sql).parse::<usize>().unwrap() < statements {
        assert!(started.elapsed() < HANG, "nothing is blocked");
        thread::sleep(Duration::from_millis(5));
    }
}

fn service(database: &str) -> Service {
    let service = Service::start_ready(&Setup {
        database_url: Some(database.to_owned()),
        products: 1_000,
        flags: &EXACT,
        ..Setup::default()
    });
    service.until_closed();
    service
}

/// The rows that were added, once there are as many.
fn added(service: &Service, database: &str, count: usize) -> Vec<(i64, String)> {
    let mut session = DatabaseSession::open(database);
    let mut rows = Vec::new();
    let started = Instant::now();
    while rows.len() < count {
        assert!(started.elapsed() < 2 * HANG, "{rows:?}\n{}", service.program.stderr());
        rows = session.products_from(1_001);
    }
    rows
}

#[test]
fn case_55_a_post_is_committed_after_its_client_disconnects() {
    let postgres = PostgresServer::shared();
    let database = postgres.create_database();
    let service = service(&database);
    let lock = lock_products(&database);
    let conn = send_write(&service, "POST", "/products", "left");
    until_blocked(postgres, &database, 1);
    conn.reset();
    let closed = send_write(&service, "POST", "/products", "left");
    until_blocked(postgres, &database, 2);
    closed.close();
    thread::sleep(Duration::from_millis(200));
    drop(lock);
    for (id, name) in added(&service, &database, 2) {
        let reply = service.get(&format!("/products/{id}"));
        assert_eq!((reply.status, name.as_str()), (200, "left"));
    }
    service.until_idle();
    assert_eq!(service.count("/counts/writes_ended"), 2);
    assert_eq!(service.count("/counts/writes_unknown"), 0);
}

#[test]
fn case_55_a_post_to_sqlite_is_committed_after_its_client_disconnects() {
    let folder = testbed::temp_folder();
    let database = format!("sqlite:{}", folder.path().join("products.db").display());
    let service = service(&database);
    let mut lock = DatabaseSession::open(&database);
    lock.run("BEGIN IMMEDIATE");
    let conns: Vec<Conn> =
        (0..3).map(|_| send_write(&service, "POST", "/products", "left")).collect();
    // Nothing shows from outside that they are blocked.
    thread::sleep(Duration::from_millis(400));
    for conn in conns {
        conn.reset();
    }
    thread::sleep(Duration::from_millis(200));
    assert!(lock.products_from(1_001).is_empty());
    drop(lock);
    for (id, _) in added(&service, &database, 3) {
        assert_eq!(service.product(id), 200);
    }
    service.until_idle();
    assert_eq!(service.count("/counts/writes_ended"), 3);
    assert_eq!(service.count("/counts/writes_unknown"), 0);
}

#[test]
fn case_55_a_put_is_committed_after_its_client_disconnects_and_reads_are_answered_meanwhile() {
    let postgres = PostgresServer::shared();
    let database = postgres.create_database();
    let service = service(&database);
    assert_eq!(service.product(7), 200);
    let mut lock = DatabaseSession::open(&database);
    lock.run("BEGIN; SELECT 1 FROM products WHERE id = 7 FOR UPDATE");
    let first = send_write(&service, "PUT", "/products/7", "first");
    until_blocked(postgres, &database, 1);
    let mut second = send_write(&service, "PUT", "/products/7", "second");
    until_blocked(postgres, &database, 2);
    first.reset();
    assert_eq!(service.count("/in_flight/writes"), 2);
    for _ in 0..5 {
        let reply = service.get("/products/7");
        assert_eq!((reply.status, name_in(&reply).as_str()), (200, "Product 7"));
    }
    drop(lock);
    let reply = second.read_reply(false).unwrap();
    assert_eq!((reply.status, name_in(&reply).as_str()), (200, "second"));
    service.until_idle();
    let stored = postgres.psql_at(&database, "SELECT name FROM products WHERE id = 7");
    assert!(stored == "first" || stored == "second");
    // From the database, then from the cache.
    for _ in 0..2 {
        assert_eq!(name_in(&service.get("/products/7")), stored);
    }
    assert_eq!(service.count("/counts/writes_ended"), 2);
}

#[test]
fn case_30_readers_that_share_a_load_are_answered_after_the_first_disconnects() {
    let postgres = PostgresServer::shared();
    let database = postgres.create_database();
    let service = service(&database);
    let loads = service.count("/counts/loader/loads");
    let lock = lock_products(&database);
    let ask = |id: i64| {
        let mut conn = Conn::open(&service.url);
        conn.set_timeout(HANG).unwrap();
        let request = format!("GET /products/{id} HTTP/1.1\r\nHost: test\r\n\r\n");
        conn.send(request.as_bytes()).unwrap();
        conn
    };
    let first = ask(9);
    until_blocked(postgres, &database, 1);
    let others: Vec<Conn> = (0..10).map(|_| ask(9)).collect();
    first.reset();
    // Everyone who asked for this one goes away.
    let abandoned = ask(10);
    until_blocked(postgres, &database, 2);
    abandoned.reset();
    thread::sleep(Duration::from_millis(100));
    drop(lock);
    for mut conn in others {
        let reply = conn.read_reply(false).unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    service.until_idle();
    assert_eq!(service.count("/counts/loader/loads"), loads + 2);
    for id in [9, 10] {
        assert_eq!(service.product(id), 200);
    }
}
