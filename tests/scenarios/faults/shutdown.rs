//! Graceful shutdown of the service with requests in flight.

use testbed::net::Conn;
use testbed::{PostgresServer, Signal};

use crate::client_disconnect::send_write;
use crate::database_lock::{DatabaseSession, lock_products, until_blocked};
use crate::service::{CEILING, Service, Setup};
use crate::traffic::{EXACT, send_read};

#[test]
fn sigterm_answers_requests_in_flight_before_the_service_exits() {
    let database = PostgresServer::shared().create_database();
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
    until_blocked(&service, &database, 1);
    let left = send_write(&service, "POST", "/products", "left");
    until_blocked(&service, &database, 2);
    let mut read = send_read(&service, 2);
    until_blocked(&service, &database, 3);
    left.reset();

    service.program.signal(Signal::SIGTERM);
    service.until("refusing connections", || Conn::try_open(&service.url).is_err());
    // Connections without a request are closed while others are still served.
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
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let service =
            Service::start_ready(&Setup { products: 1_000, flags: &EXACT, ..Setup::default() });
        let mut idle: Vec<Conn> = (0..20).map(|_| Conn::open(&service.url)).collect();
        // The first one never sends anything.
        for conn in idle.iter_mut().skip(1) {
            assert_eq!(conn.request("GET", "/products/1", &[], b"").status, 200);
        }
        service.program.signal(signal);
        let status = service.program.wait(CEILING).expect("it ends");
        assert_eq!(status.code(), Some(0));
        // The service logs this when it has waited for as long as it waits for requests.
        let log = service.program.stderr();
        assert!(!log.contains("were not answered within"), "{log}");
        for mut conn in idle {
            assert_eq!(conn.read_to_end().unwrap(), b"");
        }
    }
}
