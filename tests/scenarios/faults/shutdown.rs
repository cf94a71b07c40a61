//! The service is asked to end while it works.

use std::time::{Duration, Instant};

use testbed::net::Conn;
use testbed::{PostgresServer, Signal};

use crate::client_disconnect::{send_write, until_blocked};
use crate::database_lock::{DatabaseSession, lock_products};
use crate::service::{CEILING, Service, Setup};
use crate::traffic::{EXACT, HANG};

#[test]
fn sigterm_answers_requests_in_flight_before_the_service_exits() {
    let postgres = PostgresServer::shared();
    let database = postgres.create_database();
    let service = Service::start_ready(&Setup {
        database_url: Some(database.clone()),
        products: 1_000,
        flags: &EXACT,
        ..Setup::default()
    });
    service.until_closed();
    let mut idle: Vec<Conn> = (0..5).map(|_| Conn::open(&service.url)).collect();
    for conn in idle.iter_mut().skip(2) {
        assert_eq!(conn.request("GET", "/products/1", &[], b"").status, 200);
    }
    let lock = lock_products(&database);
    let mut write = send_write(&service, "POST", "/products", "answered");
    until_blocked(postgres, &database, 1);
    let left = send_write(&service, "POST", "/products", "left");
    until_blocked(postgres, &database, 2);
    let mut read = Conn::open(&service.url);
    read.send(b"GET /products/2 HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    until_blocked(postgres, &database, 3);
    left.reset();

    service.program.signal(Signal::SIGTERM);
    let started = Instant::now();
    while Conn::try_open(&service.url).is_ok() {
        assert!(started.elapsed() < HANG, "it still takes connections");
    }
    // Those who have nothing to wait for are let go while others are still served.
    for conn in &mut idle {
        assert_eq!(conn.read_to_end().unwrap(), b"");
    }
    assert_eq!(service.program.status(), None);
    drop(lock);
    assert_eq!(write.read_reply(false).unwrap().status, 201);
    assert_eq!(read.read_reply(false).unwrap().status, 200);
    let status = service.program.wait(CEILING).expect("it ends");
    assert_eq!(status.code(), Some(0), "{}", service.program.stderr());
    let rows = DatabaseSession::open(&database).products_from(1_001);
    let mut names: Vec<&str> = rows.iter().map(|(_, name)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["answered", "left"]);
}

#[test]
fn idle_connections_do_not_delay_shutdown() {
    let service =
        Service::start_ready(&Setup { products: 1_000, flags: &EXACT, ..Setup::default() });
    let mut idle: Vec<Conn> = (0..20).map(|_| Conn::open(&service.url)).collect();
    for conn in &mut idle {
        assert_eq!(conn.request("GET", "/products/1", &[], b"").status, 200);
    }
    service.program.signal(Signal::SIGTERM);
    let status = service.program.wait(HANG).expect("it ends");
    assert_eq!(status.code(), Some(0));
    for mut conn in idle {
        conn.set_timeout(Duration::from_secs(1)).unwrap();
        assert_eq!(conn.read_to_end().unwrap(), b"");
    }
}
