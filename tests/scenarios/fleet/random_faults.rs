//! Random faults, one after the other and two at a time.

use std::thread;
use std::time::{Duration, Instant};

use testbed::net::Flow;

use crate::cluster::{Cluster, WINDOW};
use crate::driver::Driver;
use crate::network::{WAYS, set};
use crate::pauses::stop_for;
use crate::random::{Random, seed};
use crate::redis::{away_for, fail_over};
use crate::restarts::{kill_and_replace, replace};
use crate::run::work_through;

/// A fault, and often the network of an instance fails at the same time.
fn strike(cluster: &mut Cluster, driver: &Driver, random: &mut Random) {
    let broken = random.below(3);
    let way = WAYS[random.below(WAYS.len())];
    let flow = [Flow::Forward, Flow::Hold, Flow::Cut][random.below(3)];
    let number = random.below(3);
    let fault = random.below(8);
    println!("fault {fault}, instance {number}; {flow:?} {way:?} of instance {broken}");
    let abandons = random.below(2) == 0;
    driver.abandons.store(abandons, std::sync::atomic::Ordering::Relaxed);
    set(&cluster.proxies[broken], way, flow);
    match fault {
        0 => stop_for(cluster, driver, number, Duration::from_millis(100)),
        1 => stop_for(cluster, driver, number, Duration::from_secs(4)),
        2 | 3 if flow != Flow::Forward => thread::sleep(Duration::from_secs(5)),
        2 => kill_and_replace(cluster, driver, number),
        3 => replace(cluster, driver, number),
        4 => assert_eq!(cluster.redis.command(&["FLUSHALL"]), "OK"),
        5 => away_for(cluster, Duration::ZERO),
        6 => fail_over(cluster, driver),
        _ => away_for(cluster, WINDOW + Duration::from_secs(1)),
    }
    set(&cluster.proxies[broken], way, Flow::Forward);
    // The next fault may find an instance that hasn't recovered from this one.
    driver.until_written(5);
}

#[test]
fn random_faults_make_no_instance_refuse_a_row() {
    let seed = seed();
    let mut random = Random::new(seed);
    let mut cluster = Cluster::start();
    let time = Duration::from_secs(testbed::repetitions(20, 1_800));
    work_through("random faults", seed, &mut cluster, |cluster, driver| {
        let end = Instant::now() + time;
        while Instant::now() < end {
            strike(cluster, driver, &mut random);
        }
        driver.abandons.store(false, std::sync::atomic::Ordering::Relaxed);
    });
}
