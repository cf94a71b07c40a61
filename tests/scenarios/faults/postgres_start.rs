//! PostgreSQL, unavailable at the start of the service or during its warm-up.

use std::thread;
use std::time::Duration;

use testbed::PostgresServer;

use crate::database_lock::DatabaseSession;
use crate::outcome_log::assert_try_again;
use crate::postgres_outage::terminate_connections;
use crate::service::{Service, Setup};
use crate::traffic::{EXACT, Traffic, Workload, absent_id, read_concurrently};

#[test]
fn case_27_a_service_started_without_postgres_answers_503_until_it_is_up() {
    let postgres = PostgresServer::start();
    postgres.stop();
    let service = Service::start(&Setup {
        postgres: Some(&postgres),
        products: 5_000,
        flags: &EXACT,
        ..Setup::default()
    });
    for _ in 0..3 {
        let unready = service.get("/readyz");
        assert_try_again(&unready);
        assert!(unready.text().contains("database"), "{}", unready.text());
        let guard = service.guard();
        assert_eq!(guard["gate"]["state"], "open", "{guard}");
        read_concurrently(&service, &[1, 5_000, absent_id()]).iter().for_each(assert_try_again);
        assert_try_again(&service.post("refused"));
        assert_eq!(service.get("/healthz").status, 200);
        // The service tries again each second.
        thread::sleep(Duration::from_millis(600));
    }
    postgres.restart();
    service.until("ready", || service.get("/readyz").status == 200);
    service.until_closed();
    assert!(service.count("/gate/items") >= 5_000);
    for id in (1..=5_000).step_by(100) {
        assert_eq!(service.product(id), 200);
    }
    let id = service.create("first");
    assert_eq!(service.product(id), 200);
    let loads = service.count("/counts/loader/loads");
    assert_eq!(service.product(absent_id()), 404);
    assert_eq!(service.count("/counts/loader/loads"), loads);
    let rows = DatabaseSession::open(&postgres.url()).products_from(5_001);
    assert_eq!(rows, [(id, "first".to_owned())]);
}

#[test]
fn case_35_an_interrupted_warm_up_never_closes_the_gate() {
    const ROWS: i64 = 300_000;
    let postgres = PostgresServer::start();
    // The scenario reads the progress from the text of `/readyz`, which ends with the wait.
    let flags =
        ["--write-window", "10s", "--false-positive-rate", "0.0001", "--ready-within", "10m"];
    let setup = Setup {
        postgres: Some(&postgres),
        products: ROWS as u64,
        flags: &flags,
        ..Setup::default()
    };
    // Creates and fills the table.
    let first = Service::start(&setup);
    first.until("filled", || {
        postgres.psql("SELECT to_regclass('products') IS NOT NULL") == "t"
            && postgres.psql("SELECT count(*) FROM products") == ROWS.to_string()
    });
    first.program.kill9();

    let service = Service::start(&setup);
    let scattered = || Workload::Uncached(ROWS - 20_000..=ROWS);
    let traffic = Traffic::start(&service, vec![scattered(), Workload::Uncached(1..=20_000)]);
    traffic.may_fail(true, true);
    let mut interrupted = 0;
    let mut read_before = 0;
    while !service.gate_is_closed() {
        let read = keys_read(&service);
        if read > read_before && read < ROWS as u64 && interrupted < 4 {
            // During a scan, alternately by ending its connection and the server.
            if interrupted % 2 == 0 {
                terminate_connections(&postgres);
            } else {
                postgres.stop();
                let guard = service.guard();
                assert_ne!(guard["gate"]["state"], "closed", "{guard}");
                postgres.restart();
            }
            interrupted += 1;
            read_before = read;
        }
    }
    assert!(interrupted >= 2, "the warm-up was over too soon; give it more rows");
    service.until_closed();
    let items = service.count("/gate/items");
    assert!(items >= ROWS as u64, "{items}");
    // The scan resumed where it was interrupted.
    assert!(items < ROWS as u64 * 3 / 2, "{items}");
    traffic.wait_for_answers(3);
    traffic.may_fail(false, false);
    traffic.wait_for_answers(100);
    traffic.stop(&service);
    for id in (1..=ROWS).step_by(211) {
        assert_eq!(service.product(id), 200, "{id}");
    }
    assert_eq!(service.product(absent_id()), 404);
}

/// The number of keys that the scan has read, from the text of `/readyz`.
fn keys_read(service: &Service) -> u64 {
    let text = service.get("/readyz").text();
    let before = text.split(" keys read so far").next().filter(|before| before.len() < text.len());
    let number = before.and_then(|before| before.rsplit(' ').next());
    number.map_or(0, |number| number.parse().unwrap())
}
