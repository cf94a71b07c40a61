//! Instances that are killed or replaced while the others go on.

use crate::cluster::Cluster;
use crate::driver::Driver;
use crate::random::seed;
use crate::run::work_through;

/// Kills an instance under traffic and starts another in its place.
pub(crate) fn kill_and_replace(cluster: &mut Cluster, driver: &Driver, number: usize) {
    cluster.services[number].program.kill9();
    let mut others = cluster.urls();
    others.remove(number);
    driver.route_to(others);
    let successor = cluster.launch(number);
    successor.until("ready", || successor.get("/readyz").status == 200);
    cluster.services[number] = successor;
    driver.route_to(cluster.urls());
}

/// Replaces an instance as a load balancer does, with its successor ready before it leaves.
pub(crate) fn replace(cluster: &mut Cluster, driver: &Driver, number: usize) {
    let successor = cluster.launch(number);
    successor.until("ready", || successor.get("/readyz").status == 200);
    assert_eq!(cluster.services[number].get("/readyz").status, 200, "the predecessor lives");
    let predecessor = std::mem::replace(&mut cluster.services[number], successor);
    // The requests under way end.
    driver.route_to(cluster.urls());
    let status = predecessor.program.terminate();
    assert!(status.success(), "{status}:\n{}", predecessor.program.stderr());
}

/// The rows of members that were killed are fenced, waited for and removed.
fn until_three_members(cluster: &Cluster) {
    let service = &cluster.services[0];
    service.until("three members", || {
        service.guard()["fleet"]["members"].as_array().is_some_and(|all| all.len() == 3)
    });
}

#[test]
fn a_killed_instance_delays_the_others_and_its_successor_refuses_nothing() {
    let mut cluster = Cluster::start();
    work_through("two instances killed", seed(), &mut cluster, |cluster, driver| {
        for number in 0..2 {
            kill_and_replace(cluster, driver, number);
        }
    });
    until_three_members(&cluster);
}

#[test]
fn a_rolling_restart_under_traffic_waits_for_no_predecessor_and_fails_no_read() {
    let mut cluster = Cluster::start();
    let counts = work_through("rolling restart", seed(), &mut cluster, |cluster, driver| {
        for number in 0..3 {
            replace(cluster, driver, number);
        }
    });
    assert_eq!(counts.failed_reads, 0);
    until_three_members(&cluster);
}
