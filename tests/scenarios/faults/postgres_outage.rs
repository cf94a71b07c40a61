//! PostgreSQL, stopped, killed, frozen, or ending its clients' connections.

use std::thread;
use std::time::Duration;

use testbed::{PostgresServer, RedisServer};

use crate::database_lock::{DatabaseSession, lock_products};
use crate::outcome_log::assert_try_again;
use crate::service::{Service, Setup};
use crate::traffic::{EXACT_SINGLE, Traffic, Workload, absent_id, read_concurrently, workloads};

const PRODUCTS: i64 = 20_000;
/// Products that are not read before the outage.
const UNSEEN: std::ops::RangeInclusive<i64> = 91..=100;
/// The same, far beyond what the traffic has read by then: more than twice as many as there are
/// permits, and twice as many as there are connections.
const MANY_UNSEEN: std::ops::RangeInclusive<i64> = PRODUCTS - 99..=PRODUCTS - 20;

fn start(postgres: &PostgresServer, redis: &RedisServer, flags: &[&str]) -> Service {
    Service::start_ready(&Setup {
        postgres: Some(postgres),
        redis: Some(redis),
        products: PRODUCTS as u64,
        flags,
        ..Setup::default()
    })
}

/// During the outage cached products are served, other products get 503, and absent ids are
/// refused. Afterwards all products are served.
fn outage(break_it: impl Fn(&PostgresServer), repair: impl Fn(&PostgresServer)) {
    let (postgres, redis) = (PostgresServer::start(), RedisServer::start());
    let service = start(&postgres, &redis, &EXACT_SINGLE);
    service.until_closed();
    for id in 1..=50 {
        assert_eq!(service.product(id), 200);
    }
    let traffic = Traffic::start(&service, workloads(PRODUCTS));
    traffic.wait_for_answers(20);
    traffic.may_fail(true, true);
    break_it(&postgres);
    let unseen: Vec<i64> = UNSEEN.collect();
    for _ in 0..2 {
        read_concurrently(&service, &unseen).iter().for_each(assert_try_again);
        assert!(service.gate_is_closed(), "{}", service.guard());
        assert_eq!(
            service.get("/readyz").status,
            200,
            "all instances would leave their load balancer"
        );
    }
    let many: Vec<i64> = MANY_UNSEEN.collect();
    read_concurrently(&service, &many).iter().for_each(assert_try_again);
    assert_try_again(&service.put(70, "changed"));
    traffic.wait_for_answers(2);
    repair(&postgres);
    service.until("reading again", || service.product(unseen[0]) == 200);
    // No failed load was remembered.
    for reply in read_concurrently(&service, &unseen) {
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    service.until("writing again", || service.put(70, "repaired").status == 200);
    traffic.wait_for_answers(3);
    traffic.may_fail(false, false);
    traffic.wait_for_answers(30);
    let outcomes = traffic.stop(&service);
    for id in many {
        assert_eq!(service.product(id), 200, "{id}");
    }
    for workload in ["uncached", "post"] {
        assert!(outcomes.answers(workload, 503) > 0, "{:?}", outcomes.answers);
    }
    let guard = service.guard();
    assert_eq!(guard["counts"]["loader"]["absent"], 0, "{guard}");
    assert_eq!(guard["counts"]["nulls_stored"]["local"], 0, "{guard}");
    assert_eq!(guard["counts"]["nulls_stored"]["shared"], 0, "{guard}");
    assert!(service.gate_is_closed());
    outcomes.check(&service, &DatabaseSession::open(&postgres.url()).products_from(PRODUCTS + 1));
}

#[test]
fn case_27_a_stopped_postgres_is_not_taken_for_absent_rows() {
    outage(PostgresServer::stop, PostgresServer::restart);
}

#[test]
fn case_27_a_killed_postgres_is_not_taken_for_absent_rows() {
    outage(PostgresServer::kill, PostgresServer::restart);
}

#[test]
fn case_27_a_frozen_postgres_is_not_taken_for_absent_rows() {
    outage(PostgresServer::freeze, PostgresServer::thaw);
}

#[test]
fn case_27_an_open_gate_answers_503_and_not_404_while_postgres_is_down() {
    let (postgres, redis) = (PostgresServer::start(), RedisServer::start());
    let service = start(&postgres, &redis, &["--gate", "open", "--single-instance"]);
    for id in 1..=50 {
        assert_eq!(service.product(id), 200);
    }
    let (seen, unseen) = (absent_id(), [absent_id(), absent_id()]);
    assert_eq!(service.product(seen), 404);
    let workloads = || {
        vec![
            Workload::Cached(1..=50),
            Workload::Uncached(101..=PRODUCTS),
            Workload::AbsentUnguarded,
        ]
    };
    let traffic = Traffic::start(&service, workloads());
    traffic.wait_for_answers(20);
    traffic.may_fail(true, true);
    postgres.stop();
    read_concurrently(&service, &unseen).iter().for_each(assert_try_again);
    // A sentinel from before the outage is still served.
    assert_eq!(service.product(seen), 404);
    traffic.wait_for_answers(2);
    postgres.restart();
    service.until("reading again", || service.product(unseen[0]) == 404);
    traffic.wait_for_answers(3);
    traffic.may_fail(false, false);
    traffic.wait_for_answers(20);
    let outcomes = traffic.stop(&service);
    assert!(outcomes.answers("unguarded", 503) > 0, "{:?}", outcomes.answers);
    assert!(outcomes.answers("unguarded", 404) > 0, "{:?}", outcomes.answers);
    assert_eq!(service.product(unseen[1]), 404);
}

#[test]
fn case_27_a_locked_table_is_not_taken_for_absent_rows() {
    let (postgres, redis) = (PostgresServer::start(), RedisServer::start());
    let service = start(&postgres, &redis, &EXACT_SINGLE);
    service.until_closed();
    for id in 1..=50 {
        assert_eq!(service.product(id), 200);
    }
    let failed =
        || service.count("/counts/loader/timeouts") + service.count("/counts/loader/errors");
    let before = failed();
    let unseen: Vec<i64> = UNSEEN.collect();
    let lock = lock_products(&postgres.url());
    read_concurrently(&service, &unseen).iter().for_each(assert_try_again);
    for id in 1..=50 {
        assert_eq!(service.product(id), 200);
    }
    assert_eq!(service.product(absent_id()), 404);
    assert!(failed() >= before + unseen.len() as u64, "{}", service.guard());
    assert_try_again(&service.put(1, "changed"));
    drop(lock);
    service.until("reading again", || service.product(unseen[0]) == 200);
    for reply in read_concurrently(&service, &unseen) {
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    assert_eq!(service.count("/counts/loader/absent"), 0);
    assert_eq!(service.put(1, "changed").status, 200);
    assert_eq!(service.product(1), 200);
}

#[test]
fn case_27_terminated_connections_are_not_taken_for_absent_rows() {
    let (postgres, redis) = (PostgresServer::start(), RedisServer::start());
    let service = start(&postgres, &redis, &EXACT_SINGLE);
    service.until_closed();
    let traffic = Traffic::start(&service, workloads(PRODUCTS));
    traffic.wait_for_answers(20);
    traffic.may_fail(true, true);
    for _ in 0..15 {
        terminate_connections(&postgres);
        thread::sleep(Duration::from_millis(60));
    }
    service.until("reading again", || service.product(100) == 200);
    service.until("writing again", || service.put(70, "repaired").status == 200);
    traffic.wait_for_answers(3);
    traffic.may_fail(false, false);
    traffic.wait_for_answers(30);
    let outcomes = traffic.stop(&service);
    assert_eq!(service.count("/counts/loader/absent"), 0, "{}", service.guard());
    outcomes.check(&service, &DatabaseSession::open(&postgres.url()).products_from(PRODUCTS + 1));
}

/// Ends all connections of the service.
pub(crate) fn terminate_connections(postgres: &PostgresServer) {
    postgres.psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE application_name = 'product-detail'",
    );
}
