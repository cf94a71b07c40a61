//! Many want the same few things while Redis is down and the database is slow.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use testbed::{PostgresServer, RedisServer};

use crate::client_disconnect::until_blocked;
use crate::database_lock::lock_products;
use crate::service::{Service, Setup};
use crate::traffic::{EXACT, all_at_once};

/// All connections of the service's pools.
const MAX_CONNECTIONS: u64 = 36 + 8 + 2;

#[test]
fn case_21_a_stampede_costs_one_load_per_id_and_no_more_connections_than_the_pool_has() {
    const IDS: i64 = 20;
    let redis = RedisServer::start();
    let postgres = PostgresServer::shared();
    let database = postgres.create_database();
    let service = Service::start_ready(&Setup {
        database_url: Some(database.clone()),
        redis: Some(&redis),
        products: 1_000,
        flags: &EXACT,
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
        let asked: Vec<i64> = hot.iter().cycle().take(200).copied().collect();
        let (loads, failed) = (counts(&["loads"]), counts(&["timeouts", "errors"]));
        let lock = lock_products(&database);
        let over = AtomicBool::new(false);
        let (replies, most) = thread::scope(|scope| {
            let watching = scope.spawn(|| {
                let sql = "SELECT count(*) FROM pg_stat_activity \
                           WHERE datname = current_database() \
                           AND application_name = 'product-detail'";
                let mut most = 0;
                while !over.load(Ordering::Relaxed) {
                    most = most.max(postgres.psql_at(&database, sql).parse::<u64>().unwrap());
                    thread::sleep(Duration::from_millis(20));
                }
                most
            });
            let asking = scope.spawn(|| all_at_once(&service, &asked));
            until_blocked(postgres, &database, hot.len());
            thread::sleep(Duration::from_millis(700));
            drop(lock);
            let replies = asking.join().unwrap();
            over.store(true, Ordering::Relaxed);
            (replies, watching.join().unwrap())
        });
        for reply in &replies {
            assert!(reply.status == 200 || reply.status == 503, "{}", reply.text());
        }
        let found = replies.iter().filter(|reply| reply.status == 200).count();
        assert!(found > 0);
        // Whoever comes after a failed load makes a new one.
        let failed = counts(&["timeouts", "errors"]) - failed;
        let loads = counts(&["loads"]) - loads;
        assert!(loads <= IDS as u64 + failed, "{loads} loads, {failed} failed");
        assert!((1..=MAX_CONNECTIONS).contains(&most), "{most} connections");
        for id in hot {
            assert_eq!(service.product(id), 200);
        }
    }
    assert_eq!(counts(&["absent"]), 0);
    redis.restart();
    service.until("writing again", || service.put(1, "repaired").status == 200);
}
