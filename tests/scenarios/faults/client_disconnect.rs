//! Clients that disconnect during a read or a write, at known points.

use testbed::PostgresServer;
use testbed::net::Conn;

use crate::database_lock::{DatabaseSession, lock_products, until_blocked};
use crate::outcome_log::name_in;
use crate::service::{Service, Setup, product_json};
use crate::traffic::{EXACT, HANG, send_read};

/// Sends a write and doesn't wait for its answer.
pub(crate) fn send_write(service: &Service, method: &str, path: &str, name: &str) -> Conn {
    let body = if method == "DELETE" { String::new() } else { product_json(name) };
    let mut conn = Conn::open(&service.url);
    conn.set_timeout(HANG).unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    conn.send(request.as_bytes()).unwrap();
    conn
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

/// Waits until `count` rows were added, and returns them.
fn until_added(service: &Service, database: &str, count: usize) -> Vec<(i64, String)> {
    let mut session = DatabaseSession::open(database);
    let mut rows = Vec::new();
    service.until("written", || {
        rows = session.products_from(1_001);
        rows.len() >= count
    });
    rows
}

#[test]
fn case_55_a_post_is_committed_after_its_client_disconnects() {
    let database = PostgresServer::shared().create_database();
    let service = service(&database);
    let lock = lock_products(&database);
    let conn = send_write(&service, "POST", "/products", "left");
    until_blocked(&service, &database, 1);
    conn.reset();
    let closed = send_write(&service, "POST", "/products", "left");
    until_blocked(&service, &database, 2);
    closed.close();
    service.until_it_has_served_others();
    drop(lock);
    for (id, name) in until_added(&service, &database, 2) {
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
    // SQLite doesn't show which statements wait for its lock.
    service.until_it_has_served_others();
    for conn in conns {
        conn.reset();
    }
    service.until_it_has_served_others();
    assert!(lock.products_from(1_001).is_empty());
    drop(lock);
    for (id, _) in until_added(&service, &database, 3) {
        assert_eq!(service.product(id), 200);
    }
    service.until_idle();
    assert_eq!(service.count("/counts/writes_ended"), 3);
    assert_eq!(service.count("/counts/writes_unknown"), 0);
}

#[test]
fn case_55_a_put_is_committed_after_its_client_disconnects_and_reads_are_answered_meanwhile() {
    let database = PostgresServer::shared().create_database();
    let service = service(&database);
    assert_eq!(service.product(7), 200);
    let mut lock = DatabaseSession::open(&database);
    lock.run("BEGIN; SELECT 1 FROM products WHERE id = 7 FOR UPDATE");
    let first = send_write(&service, "PUT", "/products/7", "first");
    until_blocked(&service, &database, 1);
    let mut second = send_write(&service, "PUT", "/products/7", "second");
    until_blocked(&service, &database, 2);
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
    let rows = DatabaseSession::open(&database).products_from(7);
    let stored = &rows[0].1;
    assert!(stored == "first" || stored == "second");
    // From the database, then from the cache.
    for _ in 0..2 {
        assert_eq!(name_in(&service.get("/products/7")), *stored);
    }
    assert_eq!(service.count("/counts/writes_ended"), 2);
}

#[test]
fn case_55_a_delete_is_committed_after_its_client_disconnects() {
    let database = PostgresServer::shared().create_database();
    let service = service(&database);
    assert_eq!(service.product(7), 200);
    let lock = lock_products(&database);
    let conn = send_write(&service, "DELETE", "/products/7", "");
    until_blocked(&service, &database, 1);
    conn.reset();
    service.until_it_has_served_others();
    drop(lock);
    service.until_idle();
    assert_eq!(service.product(7), 404);
    assert_eq!(service.count("/counts/writes_ended"), 1);
    assert_eq!(service.count("/counts/writes_unknown"), 0);
}

#[test]
fn case_30_readers_that_share_a_load_are_answered_after_the_first_disconnects() {
    let database = PostgresServer::shared().create_database();
    let service = service(&database);
    let loads = service.count("/counts/loader/loads");
    let lock = lock_products(&database);
    let first = send_read(&service, 9);
    until_blocked(&service, &database, 1);
    let others: Vec<Conn> = (0..10).map(|_| send_read(&service, 9)).collect();
    first.reset();
    // All readers of this product disconnect.
    let abandoned = send_read(&service, 10);
    until_blocked(&service, &database, 2);
    abandoned.reset();
    service.until_it_has_served_others();
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
