//! A Redis that is emptied, restarted, away, or replaced by a replica that lags.

use std::thread;
use std::time::{Duration, Instant};

use testbed::RedisServer;
use testbed::net::{Direction, Flow, Proxy};

use crate::cluster::{Cluster, WINDOW};
use crate::driver::Driver;
use crate::random::seed;
use crate::run::work_through;
use crate::service::CEILING;

/// Kills Redis, and starts it empty after a while.
pub(crate) fn away_for(cluster: &Cluster, time: Duration) {
    cluster.redis.kill();
    thread::sleep(time);
    cluster.redis.restart();
}

/// Promotes a replica that misses the last writes, and connects the instances to it.
pub(crate) fn fail_over(cluster: &mut Cluster, driver: &Driver) {
    cluster.redis.command(&["CONFIG", "SET", "repl-diskless-sync-delay", "0"]);
    let replication = Proxy::start(cluster.redis.port());
    // By a command, so that it is no replica when it is restarted later.
    let replica = RedisServer::start();
    let port = replication.port().to_string();
    assert_eq!(replica.command(&["REPLICAOF", "127.0.0.1", &port]), "OK");
    let end = Instant::now() + CEILING;
    while !replica.command(&["INFO", "replication"]).contains("master_link_status:up") {
        assert!(Instant::now() < end, "the replica doesn't synchronise");
        thread::sleep(Duration::from_millis(20));
    }
    driver.until_written(5);
    replication.set(Direction::ToClient, Flow::Hold);
    driver.until_written(10);
    assert_eq!(replica.command(&["REPLICAOF", "NO", "ONE"]), "OK");
    for proxy in &cluster.proxies {
        proxy.switch_to(replica.port());
    }
    cluster.redis = replica;
}

#[test]
fn a_redis_that_restarts_empty_makes_no_instance_refuse_a_row() {
    let mut cluster = Cluster::start();
    work_through("Redis restarted empty", seed(), &mut cluster, |cluster, _| {
        away_for(cluster, Duration::ZERO);
    });
}

#[test]
fn a_flushed_redis_makes_no_instance_refuse_a_row() {
    let mut cluster = Cluster::start();
    work_through("FLUSHALL", seed(), &mut cluster, |cluster, _| {
        assert_eq!(cluster.redis.command(&["FLUSHALL"]), "OK");
    });
}

#[test]
fn a_redis_away_for_longer_than_the_write_window_makes_no_instance_refuse_a_row() {
    let mut cluster = Cluster::start();
    work_through("Redis away for longer than W", seed(), &mut cluster, |cluster, _| {
        away_for(cluster, WINDOW + Duration::from_secs(2));
    });
}

#[test]
fn a_promoted_replica_that_misses_writes_makes_no_instance_refuse_a_row_or_serve_an_old_one() {
    let mut cluster = Cluster::start();
    for _ in 0..testbed::repetitions(1, 5) {
        work_through("failover to a lagging replica", seed(), &mut cluster, fail_over);
    }
}
