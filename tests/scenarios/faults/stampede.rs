//! Many reads of the same few products while Redis is down and the database is slow.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use testbed::net::Conn;
use testbed::{PostgresServer, RedisServer};

use crate::database_lock::{BLOCKED, DatabaseSession, lock_products, until_blocked};
use crate::service::{Service, Setup};
use crate::traffic::{EXACT, EXACT_SINGLE, send_read};

/// All connections of the service's pools.
const MAX_CONNECTIONS: i64 = 36 + 8 + 2;
const CONNECTIONS: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND application_name = 'product-detail'";

/// The service's limit of concurrent loads with PostgreSQL.
const PERMITS: i64 = 32;
/// Shorter than a load may take (2 s).
const IN_TIME: Duration = Duration::from_millis(1_500);

/// A lock keeps as many loads busy as there are permits. The other loads wait, and run once the
/// lock is released. An attempt in which that took too long, on a busy machine, shows nothing and
/// is repeated.
#[test]
fn loads_beyond_the_permits_wait_and_are_not_shed() {
    const READS: i64 = PERMITS + 8;
    let database = PostgresServer::shared().create_database();
    let service = Service::start_ready(&Setup {
        database_url: Some(database.clone()),
        products: 20_000,
        // Loads wait for a permit far longer than the lock is held.
        flags: &[EXACT[0], EXACT[1], "--queue-timeout", "20s"],
        ..Setup::default()
    });
    service.until_closed();
    let mut unread = 1..=20_000_i64;
    // A session of its own: within a transaction, PostgreSQL repeats the first answer.
    let mut monitor = DatabaseSession::open(&database);
    service.until("released in time", || {
        let ids: Vec<i64> = unread.by_ref().take(READS as usize).collect();
        let shed = service.count("/counts/loader/shed");
        let mut lock = lock_products(&database);
        let started = Instant::now();
        let reads: Vec<Conn> = ids.iter().map(|id| send_read(&service, *id)).collect();
        let mut blocked = 0;
        while blocked < PERMITS && started.elapsed() < IN_TIME {
            blocked = monitor.integer(BLOCKED);
        }
        assert!(blocked <= PERMITS, "{blocked} loads at a time");
        lock.run("ROLLBACK");
        let in_time = blocked == PERMITS && started.elapsed() < IN_TIME;
        let replies: Vec<_> =
            reads.into_iter().map(|mut conn| conn.read_reply(false).unwrap()).collect();
        if in_time {
            for reply in replies {
                assert_eq!(reply.status, 200, "{}", reply.text());
            }
            assert_eq!(service.count("/counts/loader/shed"), shed);
        }
        in_time
    });
}

#[test]
fn case_21_a_stampede_costs_one_load_per_id_and_no_more_connections_than_the_pool_has() {
    const IDS: i64 = 20;
    const READS: usize = 200;
    let redis = RedisServer::start();
    let database = PostgresServer::shared().create_database();
    let service = Service::start_ready(&Setup {
        database_url: Some(database.clone()),
        redis: Some(&redis),
        products: 1_000,
        flags: &EXACT_SINGLE,
        ..Setup::default()
    });
    service.until_closed();
    redis.kill();
    let counts = |what: &[&str]| -> u64 {
        let count = |what: &&str| service.count(&format!("/counts/loader/{what}"));
        what.iter().map(count).sum()
    };
    for wave in 0..2 {
        let hot: Vec<i64> = (1 + wave * IDS..=(wave + 1) * IDS).collect();
        let (loads, failed) = (counts(&["loads"]), counts(&["timeouts", "errors"]));
        let lock = lock_products(&database);
        let over = AtomicBool::new(false);
        let (replies, max_connections) = thread::scope(|scope| {
            let watching = scope.spawn(|| {
                let mut session = DatabaseSession::open(&database);
                let mut most = 0;
                while !over.load(Ordering::Relaxed) {
                    most = most.max(session.integer(CONNECTIONS));
                    thread::sleep(Duration::from_millis(5));
                }
                most
            });
            let ids = hot.iter().cycle().take(READS);
            let reads: Vec<Conn> = ids.map(|id| send_read(&service, *id)).collect();
            until_blocked(&service, &database, hot.len());
            service.until_it_has_served_others();
            drop(lock);
            let read_reply = |mut conn: Conn| conn.read_reply(false).unwrap();
            let replies: Vec<_> = reads.into_iter().map(read_reply).collect();
            over.store(true, Ordering::Relaxed);
            (replies, watching.join().unwrap())
        });
        for reply in &replies {
            assert!(reply.status == 200 || reply.status == 503, "{}", reply.text());
        }
        let found = replies.iter().filter(|reply| reply.status == 200).count();
        assert!(found > 0);
        // A read that follows a failed load starts a new one.
        let failed = counts(&["timeouts", "errors"]) - failed;
        let loads = counts(&["loads"]) - loads;
        assert!(loads <= IDS as u64 + failed, "{loads} loads, {failed} failed");
        assert!((IDS..=MAX_CONNECTIONS).contains(&max_connections), "{max_connections}");
        for id in hot {
            assert_eq!(service.product(id), 200);
        }
    }
    assert_eq!(counts(&["absent"]), 0);
    redis.restart();
    service.until("writing again", || service.put(1, "repaired").status == 200);
}
