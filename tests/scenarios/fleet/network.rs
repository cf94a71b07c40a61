//! An instance whose network to Redis fails, in one direction or in both.

use std::thread;
use std::time::Duration;

use testbed::net::{Direction, Flow, Proxy};

use crate::cluster::{Cluster, LEASE};

use crate::random::seed;
use crate::run::work_through;

/// Which directions fail.
pub(crate) const WAYS: [&[Direction]; 3] =
    [&[Direction::ToServer], &[Direction::ToClient], &[Direction::ToServer, Direction::ToClient]];

pub(crate) fn set(proxy: &Proxy, way: &[Direction], flow: Flow) {
    for direction in way {
        proxy.set(*direction, flow);
    }
}

fn break_network(flow: Flow, ways: &[&[Direction]]) {
    let mut cluster = Cluster::start();
    let longer = [LEASE + Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(40)];
    let count = usize::try_from(testbed::repetitions(1, 3)).unwrap();
    for time in &longer[..count] {
        for way in ways {
            let what = format!("{flow:?} {way:?} for {time:?}");
            work_through(&what, seed(), &mut cluster, |cluster, _| {
                let proxy = &cluster.proxies[1];
                set(proxy, way, flow);
                thread::sleep(*time);
                set(proxy, way, Flow::Forward);
            });
        }
    }
}

#[test]
fn an_instance_whose_packets_to_or_from_redis_are_held_refuses_no_row() {
    break_network(Flow::Hold, &WAYS);
}

#[test]
fn an_instance_whose_connections_to_redis_are_cut_refuses_no_row() {
    // The direction makes no difference to a closed connection.
    break_network(Flow::Cut, &[&[Direction::ToServer]]);
}
