//! PostgreSQL that stops, dies, stalls, or throws its clients out.

use std::thread;
use std::time::Duration;

use testbed::{PostgresServer, RedisServer};

use crate::ledger::assert_try_again;
use crate::service::{Service, Setup};
use crate::session::{Session, lock_products};
use crate::traffic::{EXACT, Lane, Traffic, absent_id, all_at_once, lanes};

const PRODUCTS: i64 = 20_000;
/// Never asked for before the outage.
const UNSEEN: std::ops::RangeInclusive<i64> = 91..=100;

fn start(postgres: &PostgresServer, redis: &RedisServer, flags: &[&str]) -> Service {
    Service::start_ready(&Setup {
        postgres: Some(postgres),
        redis: Some(redis),
        products: PRODUCTS as u64,
        flags,
        ..Setup::default()
    })
}

/// What is cached is served, what isn't gets 503, what doesn't exist is refused as ever, and
/// afterwards everything is as before.
fn outage(strike: impl Fn(&PostgresServer), mend: impl Fn(&PostgresServer)) {
    let (postgres, redis) = (PostgresServer::start(), RedisServer::start());
    let service = start(&postgres, &redis, &EXACT);
    service.until_closed();
    for id in 1..=50 {
        assert_eq!(service.product(id), 200);
    }
    let traffic = Traffic::start(&service, lanes(PRODUCTS));
    traffic.flow(20);
    traffic.may_fail(true, true);
    strike(&postgres);
    let unseen: Vec<i64> = UNSEEN.collect();
    for _ in 0..2 {
        all_at_once(&service, &unseen).iter().for_each(assert_try_again);
        assert!(service.gate_is_closed(), "{}", service.guard());
        assert_eq!(service.get("/readyz").status, 200, "a fleet must not leave its balancer");
    }
    assert_try_again(&service.put(70, "changed"));
    traffic.flow(2);
    mend(&postgres);
    service.until("reading again", || service.product(unseen[0]) == 200);
    // Nothing was remembered of them.
    for reply in all_at_once(&service, &unseen) {
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    service.until("writing again", || service.put(70, "mended").status == 200);
    traffic.flow(3);
    traffic.may_fail(false, false);
    traffic.flow(30);
    let ledger = traffic.stop(&service);
    for lane in ["uncached", "post"] {
        assert!(ledger.answers(lane, 503) > 0, "{:?}", ledger.answers);
    }
    let guard = service.guard();
    assert_eq!(guard["counts"]["loader"]["absent"], 0, "{guard}");
    assert_eq!(guard["counts"]["nulls_stored"]["local"], 0, "{guard}");
    assert_eq!(guard["counts"]["nulls_stored"]["shared"], 0, "{guard}");
    assert!(service.gate_is_closed());
    ledger.check(&service, &Session::open(&postgres.url()).products_from(PRODUCTS + 1));
}

#[test]
fn case_27_postgres_stopped_under_load() {
    outage(PostgresServer::stop, PostgresServer::restart);
}

#[test]
fn case_27_postgres_killed_under_load() {
    outage(PostgresServer::kill, PostgresServer::restart);
}

#[test]
fn case_27_postgres_frozen_under_load() {
    outage(PostgresServer::freeze, PostgresServer::thaw);
}

#[test]
fn case_27_an_open_gate_says_503_and_not_404_while_postgres_is_down() {
    let (postgres, redis) = (PostgresServer::start(), RedisServer::start());
    let service = start(&postgres, &redis, &["--gate", "open"]);
    for id in 1..=50 {
        assert_eq!(service.product(id), 200);
    }
    let (seen, unseen) = (absent_id(), [absent_id(), absent_id()]);
    assert_eq!(service.product(seen), 404);
    let lanes =
        || vec![Lane::Cached(1..=50), Lane::Uncached(101..=PRODUCTS), Lane::AbsentUnguarded];
    let traffic = Traffic::start(&service, lanes());
    traffic.flow(20);
    traffic.may_fail(true, true);
    postgres.stop();
    all_at_once(&service, &unseen).iter().for_each(assert_try_again);
    // A sentinel from before is an answer.
    assert_eq!(service.product(seen), 404);
    traffic.flow(2);
    postgres.restart();
    service.until("reading again", || service.product(unseen[0]) == 404);
    traffic.flow(3);
    traffic.may_fail(false, false);
    traffic.flow(20);
    let ledger = traffic.stop(&service);
    assert!(ledger.answers("unguarded", 503) > 0, "{:?}", ledger.answers);
    assert!(ledger.answers("unguarded", 404) > 0, "{:?}", ledger.answers);
    assert_eq!(service.product(unseen[1]), 404);
}

#[test]
fn case_27_a_locked_table_is_not_an_absent_row() {
    let (postgres, redis) = (PostgresServer::start(), RedisServer::start());
    let service = start(&postgres, &redis, &EXACT);
    service.until_closed();
    for id in 1..=50 {
        assert_eq!(service.product(id), 200);
    }
    let failed =
        || service.count("/counts/loader/timeouts") + service.count("/counts/loader/errors");
    let before = failed();
    let unseen: Vec<i64> = UNSEEN.collect();
    let lock = lock_products(&postgres.url());
    all_at_once(&service, &unseen).iter().for_each(assert_try_again);
    for id in 1..=50 {
        assert_eq!(service.product(id), 200);
    }
    assert_eq!(service.product(absent_id()), 404);
    assert!(failed() >= before + unseen.len() as u64, "{}", service.guard());
    assert_try_again(&service.put(1, "changed"));
    drop(lock);
    service.until("reading again", || service.product(unseen[0]) == 200);
    for reply in all_at_once(&service, &unseen) {
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    assert_eq!(service.count("/counts/loader/absent"), 0);
    assert_eq!(service.put(1, "changed").status, 200);
    assert_eq!(service.product(1), 200);
}

#[test]
fn case_27_terminated_connections_are_not_absent_rows() {
    let (postgres, redis) = (PostgresServer::start(), RedisServer::start());
    let service = start(&postgres, &redis, &EXACT);
    service.until_closed();
    let traffic = Traffic::start(&service, lanes(PRODUCTS));
    traffic.flow(20);
    traffic.may_fail(true, true);
    for _ in 0..15 {
        terminate_connections(&postgres);
        thread::sleep(Duration::from_millis(60));
    }
    service.until("reading again", || service.product(100) == 200);
    service.until("writing again", || service.put(70, "mended").status == 200);
    traffic.flow(3);
    traffic.may_fail(false, false);
    traffic.flow(30);
    let ledger = traffic.stop(&service);
    assert_eq!(service.count("/counts/loader/absent"), 0, "{}", service.guard());
    ledger.check(&service, &Session::open(&postgres.url()).products_from(PRODUCTS + 1));
}

/// Ends all connections of the service.
pub(crate) fn terminate_connections(postgres: &PostgresServer) {
    postgres.psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE application_name = 'product-detail'",
    );
}
