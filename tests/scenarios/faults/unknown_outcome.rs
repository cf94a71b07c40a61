//! Writes with an unknown outcome: their database connection breaks.

use testbed::PostgresServer;

use crate::client_disconnect::send_write;
use crate::crash::HeldCommits;
use crate::database_lock::{DatabaseSession, until_blocked};
use crate::outcome_log::{assert_try_again, is_unwritten, name_in};
use crate::service::{Service, Setup};
use crate::traffic::EXACT;

fn start(postgres: &PostgresServer) -> Service {
    let flags = [EXACT[0], EXACT[1], "--write-window", "6s"];
    let setup =
        Setup { postgres: Some(postgres), products: 1_000, flags: &flags, ..Setup::default() };
    let service = Service::start_ready(&setup);
    service.until_closed();
    service
}

/// Until the write window ends, each read goes to the database; after that the caches are used.
fn stays_open_until_the_write_window_ends(service: &Service, id: i64, name: &str) {
    let path = format!("/products/{id}");
    let hits = || service.count("/counts/local/value_hits");
    let before = hits();
    let mut reads = 0;
    while service.count("/in_flight/writes") == 1 {
        // An answer of the cache would be wrong only if the window were still open after it.
        let hits_before = hits();
        let reply = service.get(&path);
        assert_eq!((reply.status, name_in(&reply).as_str()), (200, name));
        if service.count("/in_flight/writes") == 1 {
            assert_eq!(hits_before, before);
            reads += 1;
        }
    }
    assert!(reads > 0, "the window ended before the first read");
    assert_eq!(service.count("/in_flight/writes"), 0);
    for _ in 0..2 {
        let reply = service.get(&path);
        assert_eq!((reply.status, name_in(&reply).as_str()), (200, name));
    }
    assert!(hits() > before, "{}", service.guard());
    assert!(service.gate_is_closed());
}

#[test]
fn case_55_a_commit_whose_answer_is_lost_stays_open_until_the_write_window_ends() {
    let postgres = PostgresServer::start();
    let service = start(&postgres);
    let mut held = HeldCommits::hold(&postgres);
    let write = held.start_write(&service, "POST", "/products", "held");
    assert_eq!(service.count("/in_flight/writes"), 1);
    let id = postgres.psql("SELECT last_value FROM products_id_seq").parse().unwrap();
    held.terminate();
    let reply = write.join().unwrap().unwrap();
    assert_try_again(&reply);
    assert!(!is_unwritten(&reply), "{}", reply.text());
    held.release();
    let stored = postgres.psql(&format!("SELECT name FROM products WHERE id = {id}"));
    assert_eq!(stored, "held", "a COMMIT that only waits for a standby is durable");
    assert_eq!(service.count("/counts/writes_unknown"), 1);
    stays_open_until_the_write_window_ends(&service, id, "held");
}

#[test]
fn case_55_a_change_whose_connection_breaks_stays_open_until_the_write_window_ends() {
    let postgres = PostgresServer::start();
    let service = start(&postgres);
    assert_eq!(service.product(7), 200);
    let mut lock = DatabaseSession::open(&postgres.url());
    lock.run("BEGIN; SELECT 1 FROM products WHERE id = 7 FOR UPDATE");
    let mut conn = send_write(&service, "PUT", "/products/7", "broken");
    until_blocked(&service, &postgres.url(), 1);
    postgres.psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE application_name = 'product-detail' AND wait_event_type = 'Lock'",
    );
    let reply = conn.read_reply(false).unwrap();
    assert_try_again(&reply);
    assert!(!is_unwritten(&reply), "{}", reply.text());
    drop(lock);
    stays_open_until_the_write_window_ends(&service, 7, "Product 7");
    assert_eq!(service.put(7, "changed").status, 200);
    assert_eq!(name_in(&service.get("/products/7")), "changed");
}
