//! Redis that dies, stalls, forgets, fills up, or isn't there yet.

use std::thread;
use std::time::{Duration, Instant};

use testbed::{PostgresServer, RedisServer};

use crate::ledger::{Ledger, assert_try_again, name_in, says_not_written};
use crate::service::{Service, Setup};
use crate::session::Session;
use crate::traffic::{EXACT, HANG, Traffic, absent_id, lanes};

const PRODUCTS: i64 = 20_000;

struct House {
    redis: RedisServer,
    database: String,
    service: Service,
}

impl House {
    fn start() -> Self {
        let redis = RedisServer::start();
        let database = PostgresServer::shared().create_database();
        let service = Service::start_ready(&Setup {
            database_url: Some(database.clone()),
            redis: Some(&redis),
            products: PRODUCTS as u64,
            flags: &EXACT,
            ..Setup::default()
        });
        service.until_closed();
        Self { redis, database, service }
    }

    fn traffic(&self) -> Traffic {
        Traffic::start(&self.service, lanes(PRODUCTS))
    }

    /// Writes are refused before they start, and soon.
    fn writes_are_refused(&self) {
        let Self { service, .. } = self;
        let id = 60;
        let name = name_in(&service.get(&format!("/products/{id}")));
        for _ in 0..3 {
            for reply in [service.post("refused"), service.put(id, "refused"), service.delete(id)] {
                assert_try_again(&reply);
                assert!(says_not_written(&reply));
            }
        }
        let reply = service.get(&format!("/products/{id}"));
        assert_eq!((reply.status, name_in(&reply)), (200, name));
    }

    /// The shared cache takes what is loaded, and gives it to the next process.
    fn heals(self, ledger: &Ledger) {
        let Self { redis, database, service } = self;
        service.until("without an error", || service.guard()["shared_cache_error"].is_null());
        let id = 99;
        let before = redis.command(&["DBSIZE"]).parse::<u64>().unwrap();
        assert_eq!(service.product(id), 200);
        service.until("shared", || redis.command(&["DBSIZE"]).parse::<u64>().unwrap() > before);
        let mut rows = Session::open(&database).products_from(PRODUCTS + 1);
        assert!(!rows.iter().any(|(_, name)| name == "refused"));
        ledger.check(&service, &rows);
        assert!(service.gate_is_closed());
        let service = service.kill_and_restart();
        assert_eq!(service.product(id), 200);
        assert_eq!(service.count("/counts/shared/value_hits"), 1, "{}", service.guard());
        rows.truncate(50);
        ledger_rows(&service, &rows);
    }
}

fn ledger_rows(service: &Service, rows: &[(i64, String)]) {
    for (id, name) in rows {
        let reply = service.get(&format!("/products/{id}"));
        assert_eq!((reply.status, &name_in(&reply)), (200, name), "{id}");
    }
}

/// Reads go on as if nothing had happened, the gate stays closed, writes fail and leave nothing.
fn outage(strike: impl Fn(&RedisServer), mend: impl Fn(&RedisServer)) {
    let house = House::start();
    let House { redis, service, .. } = &house;
    let traffic = house.traffic();
    traffic.flow(30);
    traffic.may_fail(false, true);
    let errors = service.count("/counts/shared/errors");
    strike(redis);
    house.writes_are_refused();
    // Longer than a member of the fleet may be silent.
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(4) {
        assert!(service.gate_is_closed(), "{}", service.guard());
        thread::sleep(Duration::from_millis(100));
    }
    traffic.flow(30);
    assert!(service.count("/counts/shared/errors") > errors, "{}", service.guard());
    mend(redis);
    service.until("writing again", || service.put(70, "mended").status == 200);
    traffic.may_fail(false, false);
    traffic.flow(30);
    let ledger = traffic.stop(service);
    assert!(ledger.answers("post", 503) > 0, "{:?}", ledger.answers);
    // Neither a refused id nor one that a failed write has admitted was looked for.
    assert_eq!(service.count("/counts/loader/absent"), 0, "{}", service.guard());
    house.heals(&ledger);
}

#[test]
fn case_20_redis_killed_under_load() {
    outage(RedisServer::kill, RedisServer::restart);
}

#[test]
fn case_20_redis_frozen_under_load() {
    outage(RedisServer::freeze, RedisServer::thaw);
}

#[test]
fn case_20_redis_full_under_load() {
    let limit = |bytes| {
        move |redis: &RedisServer| {
            redis.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
            assert_eq!(redis.command(&["CONFIG", "SET", "maxmemory", bytes]), "OK");
        }
    };
    outage(limit("1"), limit("0"));
}

#[test]
fn case_20_redis_loses_everything_under_load() {
    let house = House::start();
    let House { redis, service, .. } = &house;
    let traffic = house.traffic();
    for _ in 0..3 {
        traffic.flow(20);
        assert_eq!(redis.command(&["FLUSHALL"]), "OK");
        traffic.flow(20);
        assert_eq!(redis.command(&["SCRIPT", "FLUSH"]), "OK");
    }
    traffic.flow(20);
    traffic.may_fail(false, true);
    redis.restart();
    service.until("writing again", || service.put(70, "mended").status == 200);
    traffic.may_fail(false, false);
    traffic.flow(40);
    let ledger = traffic.stop(service);
    assert_eq!(service.count("/counts/loader/absent"), 0, "{}", service.guard());
    house.heals(&ledger);
}

#[test]
fn case_20_redis_down_at_the_start() {
    let redis = RedisServer::start();
    redis.kill();
    let service = Service::start(&Setup {
        redis: Some(&redis),
        products: 1_000,
        flags: &EXACT,
        ..Setup::default()
    });
    for id in [1, 500, 1_000] {
        assert_eq!(service.product(id), 200);
    }
    assert_eq!(service.product(absent_id()), 404);
    for reply in [service.post("refused"), service.put(1, "refused"), service.delete(1)] {
        assert_try_again(&reply);
        assert!(says_not_written(&reply));
    }
    let guard = service.guard();
    assert_eq!(guard["gate"]["state"], "open", "{guard}");
    assert!(guard["gate"]["reason"].is_string(), "{guard}");
    assert!(guard["shared_cache_error"].is_string(), "{guard}");
    let unready = service.get("/readyz");
    assert_try_again(&unready);
    assert!(unready.text().contains("redis"), "{}", unready.text());
    assert_eq!(service.get("/healthz").status, 200);

    let started = Instant::now();
    redis.restart();
    service.until("ready", || service.get("/readyz").status == 200);
    service.until_closed();
    assert!(started.elapsed() < 4 * HANG);
    let id = service.create("first");
    for id in [1, 500, 1_000, id] {
        assert_eq!(service.product(id), 200);
    }
    let refused = service.count("/counts/refused");
    assert_eq!(service.product(absent_id()), 404);
    assert_eq!(service.count("/counts/refused"), refused + 1);
    assert!(service.guard()["shared_cache_error"].is_null());
}
