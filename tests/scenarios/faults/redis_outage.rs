//! Redis, killed, frozen, emptied, full, or unavailable at the start.

use std::thread;
use std::time::{Duration, Instant};

use testbed::{PostgresServer, RedisServer};

use crate::database_lock::DatabaseSession;
use crate::outcome_log::{OutcomeLog, assert_try_again, is_unwritten, name_in};
use crate::service::{Service, Setup};
use crate::traffic::{EXACT_FLEET, EXACT_SINGLE, Traffic, absent_id, workloads};

const PRODUCTS: i64 = 20_000;

/// What Redis has after an outage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Data {
    Kept,
    Lost,
}

struct Harness {
    redis: RedisServer,
    database: String,
    service: Service,
}

impl Harness {
    fn start() -> Self {
        let redis = RedisServer::start();
        let database = PostgresServer::shared().create_database();
        let service = Service::start_ready(&Setup {
            database_url: Some(database.clone()),
            redis: Some(&redis),
            products: PRODUCTS as u64,
            flags: &EXACT_SINGLE,
            ..Setup::default()
        });
        service.until_closed();
        Self { redis, database, service }
    }

    fn traffic(&self) -> Traffic {
        Traffic::start(&self.service, workloads(PRODUCTS))
    }

    /// Fails unless writes are refused before they change anything.
    fn assert_writes_are_refused(&self) {
        let Self { service, .. } = self;
        let id = 60;
        let name = name_in(&service.get(&format!("/products/{id}")));
        for _ in 0..3 {
            for reply in [service.post("refused"), service.put(id, "refused"), service.delete(id)] {
                assert_try_again(&reply);
                assert!(is_unwritten(&reply));
            }
        }
        let reply = service.get(&format!("/products/{id}"));
        assert_eq!((reply.status, name_in(&reply)), (200, name));
    }

    /// Fails unless the shared cache stores a loaded value again, and serves it to the next
    /// process. That one finds an epoch of its own if Redis has lost the last one's.
    fn assert_recovers(self, outcomes: &OutcomeLog, data: Data) {
        let Self { redis, database, service } = self;
        service.until("without an error", || service.guard()["shared_cache_error"].is_null());
        let id = 99;
        let before = redis.command(&["DBSIZE"]).parse::<u64>().unwrap();
        assert_eq!(service.product(id), 200);
        service.until("shared", || redis.command(&["DBSIZE"]).parse::<u64>().unwrap() > before);
        let mut rows = DatabaseSession::open(&database).products_from(PRODUCTS + 1);
        assert!(!rows.iter().any(|(_, name)| name == "refused"));
        outcomes.check(&service, &rows);
        assert!(service.gate_is_closed());
        let service = service.kill_and_restart();
        assert_eq!(service.product(id), 200);
        let hits = u64::from(data == Data::Kept);
        assert_eq!(service.count("/counts/shared/value_hits"), hits, "{}", service.guard());
        rows.truncate(50);
        assert_rows_found(&service, &rows);
    }
}

fn assert_rows_found(service: &Service, rows: &[(i64, String)]) {
    for (id, name) in rows {
        let reply = service.get(&format!("/products/{id}"));
        assert_eq!((reply.status, &name_in(&reply)), (200, name), "{id}");
    }
}

/// During the outage reads succeed, the gate stays closed, and writes fail and change nothing.
fn outage(data: Data, break_it: impl Fn(&RedisServer), repair: impl Fn(&RedisServer)) {
    let harness = Harness::start();
    let Harness { redis, service, .. } = &harness;
    let traffic = harness.traffic();
    traffic.wait_for_answers(30);
    traffic.may_fail(false, true);
    let errors = service.count("/counts/shared/errors");
    break_it(redis);
    harness.assert_writes_are_refused();
    // Longer than a lease, which the only instance doesn't need.
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(4) {
        assert!(service.gate_is_closed(), "{}", service.guard());
        thread::sleep(Duration::from_millis(100));
    }
    traffic.wait_for_answers(30);
    assert!(service.count("/counts/shared/errors") > errors, "{}", service.guard());
    repair(redis);
    service.until("writing again", || service.put(70, "repaired").status == 200);
    traffic.may_fail(false, false);
    traffic.wait_for_answers(30);
    let outcomes = traffic.stop(service);
    assert!(outcomes.answers("post", 503) > 0, "{:?}", outcomes.answers);
    // No id was looked up in vain: neither a refused one, nor one that a failed write had admitted.
    assert_eq!(service.count("/counts/loader/absent"), 0, "{}", service.guard());
    harness.assert_recovers(&outcomes, data);
}

#[test]
fn case_20_reads_succeed_and_writes_fail_while_redis_is_killed() {
    outage(Data::Lost, RedisServer::kill, RedisServer::restart);
}

#[test]
fn case_20_reads_succeed_and_writes_fail_while_redis_is_frozen() {
    outage(Data::Kept, RedisServer::freeze, RedisServer::thaw);
}

#[test]
fn case_20_reads_succeed_and_writes_fail_while_redis_is_full() {
    let limit = |bytes| {
        move |redis: &RedisServer| {
            redis.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
            assert_eq!(redis.command(&["CONFIG", "SET", "maxmemory", bytes]), "OK");
        }
    };
    outage(Data::Kept, limit("1"), limit("0"));
}

#[test]
fn case_20_no_row_is_refused_when_redis_loses_its_data() {
    let harness = Harness::start();
    let Harness { redis, service, .. } = &harness;
    let traffic = harness.traffic();
    for _ in 0..3 {
        traffic.wait_for_answers(20);
        assert_eq!(redis.command(&["FLUSHALL"]), "OK");
        traffic.wait_for_answers(20);
        assert_eq!(redis.command(&["SCRIPT", "FLUSH"]), "OK");
    }
    traffic.wait_for_answers(20);
    traffic.may_fail(false, true);
    redis.restart();
    service.until("writing again", || service.put(70, "repaired").status == 200);
    traffic.may_fail(false, false);
    traffic.wait_for_answers(40);
    let outcomes = traffic.stop(service);
    assert_eq!(service.count("/counts/loader/absent"), 0, "{}", service.guard());
    harness.assert_recovers(&outcomes, Data::Lost);
}

#[test]
fn case_20_a_service_started_without_redis_serves_reads_with_an_open_gate() {
    let redis = RedisServer::start();
    redis.kill();
    is_ready_after_its_wait_with_an_open_gate(&redis);
    let service = Service::start(&Setup {
        redis: Some(&redis),
        products: 1_000,
        flags: &[&EXACT_FLEET[..], &["--ready-within", "10m"]].concat(),
        ..Setup::default()
    });
    for id in [1, 500, 1_000] {
        assert_eq!(service.product(id), 200);
    }
    assert_eq!(service.product(absent_id()), 404);
    for reply in [service.post("refused"), service.put(1, "refused"), service.delete(1)] {
        assert_try_again(&reply);
        assert!(is_unwritten(&reply));
    }
    let guard = service.guard();
    assert_eq!(guard["gate"]["state"], "open", "{guard}");
    assert!(guard["gate"]["reason"].is_string(), "{guard}");
    assert!(guard["shared_cache_error"].is_string(), "{guard}");
    let unready = service.get("/readyz");
    assert_try_again(&unready);
    assert!(unready.text().contains("redis"), "{}", unready.text());
    assert_eq!(service.get("/healthz").status, 200);

    redis.restart();
    service.until("ready", || service.get("/readyz").status == 200);
    service.until_closed();
    let id = service.create("first");
    for id in [1, 500, 1_000, id] {
        assert_eq!(service.product(id), 200);
    }
    let refused = service.count("/counts/refused");
    assert_eq!(service.product(absent_id()), 404);
    assert_eq!(service.count("/counts/refused"), refused + 1);
    assert!(service.guard()["shared_cache_error"].is_null());
}

/// Requests are answered correctly without Redis, so that the service doesn't wait for it for ever.
fn is_ready_after_its_wait_with_an_open_gate(redis: &RedisServer) {
    let service = Service::start_ready(&Setup {
        redis: Some(redis),
        products: 1_000,
        flags: &[&EXACT_FLEET[..], &["--ready-within", "1s"]].concat(),
        ..Setup::default()
    });
    let guard = service.guard();
    assert_eq!((&guard["ready"], &guard["gate"]["state"]), (&true.into(), &"open".into()));
    assert_eq!(service.product(1), 200);
    assert_eq!(service.product(absent_id()), 404);
    assert_eq!(service.count("/counts/refused"), 0);
    assert!(service.program.terminate().success(), "{}", service.program.stderr());
}

#[test]
fn case_20_a_declared_single_instance_refuses_absent_ids_without_redis() {
    let redis = RedisServer::start();
    redis.kill();
    let service = Service::start_ready(&Setup {
        redis: Some(&redis),
        products: 1_000,
        flags: &EXACT_SINGLE,
        ..Setup::default()
    });
    service.until_closed();
    assert_eq!(service.product(1), 200);
    assert_eq!(service.product(absent_id()), 404);
    assert_eq!(service.count("/counts/refused"), 1);
    assert_try_again(&service.put(1, "refused"));
}
