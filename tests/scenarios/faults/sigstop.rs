//! The service, stopped by `SIGSTOP` and resumed.

use std::thread;
use std::time::Duration;

use testbed::{PostgresServer, RedisServer};

use crate::database_lock::DatabaseSession;
use crate::service::{Service, Setup};
use crate::traffic::{EXACT_FLEET, Traffic, absent_id, workloads};

const PRODUCTS: i64 = 20_000;
/// Longer than a lease.
const STOPPED: Duration = Duration::from_millis(3_300);

#[test]
fn case_22_a_service_resumed_after_sigstop_refuses_no_existing_id() {
    let redis = RedisServer::start();
    let database = PostgresServer::shared().create_database();
    let service = Service::start_ready(&Setup {
        database_url: Some(database.clone()),
        redis: Some(&redis),
        products: PRODUCTS as u64,
        flags: &EXACT_FLEET,
        ..Setup::default()
    });
    service.until_closed();
    let traffic = Traffic::start(&service, workloads(PRODUCTS));
    for _ in 0..2 {
        traffic.wait_for_answers(20);
        // The requests in flight have no time left when the service resumes.
        traffic.may_fail(true, true);
        service.program.freeze();
        thread::sleep(STOPPED);
        service.program.thaw();
        service.until("writing again", || service.put(70, "repaired").status == 200);
        traffic.wait_for_answers(2);
        traffic.may_fail(false, false);
        traffic.wait_for_answers(20);
    }
    let outcomes = traffic.stop(&service);
    // Other instances could have written unnoticed during the stop, so the gate was open until the
    // log had been read.
    service.until_closed();
    assert!(
        service.program.stderr().contains("the lease has ended"),
        "{}",
        service.program.stderr()
    );
    assert_eq!(service.product(absent_id()), 404);
    assert_eq!(service.guard()["gate"]["state"], "closed");
    assert!(service.guard()["shared_cache_error"].is_null());
    outcomes.check(&service, &DatabaseSession::open(&database).products_from(PRODUCTS + 1));
}
