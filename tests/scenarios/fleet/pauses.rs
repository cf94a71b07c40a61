//! Instances that are stopped by `SIGSTOP` and resumed.

use std::thread;
use std::time::{Duration, Instant};

use testbed::net::Conn;

use crate::cluster::Cluster;
use crate::conns::Conns;
use crate::driver::Driver;
use crate::random::seed;
use crate::run::work_through;

/// Rows that no writer changes on its own; see `Driver`.
const PROBED: i64 = 100;

/// Stops an instance while the others go on, and sends it requests that it answers when it wakes.
pub(crate) fn stop_for(cluster: &Cluster, driver: &Driver, number: usize, time: Duration) {
    let stopped = &cluster.services[number];
    let mut others = cluster.urls();
    others.retain(|url| *url != stopped.url);
    driver.route_to(others);
    // They stand before it stops, so that it answers them as early as it can.
    let mut conns: Vec<Conn> = (0..80).map(|_| Conn::open(&stopped.url)).collect();
    for conn in &mut conns {
        assert_eq!(conn.request("GET", "/healthz", &[], b"").status, 200);
    }
    let mut probe = |id: i64| {
        let floor = driver.ledger.floor(id);
        let mut conn = conns.pop().expect("a connection for each probe");
        let head = format!("GET /products/{id} HTTP/1.1\r\nHost: test\r\n\r\n");
        conn.send(head.as_bytes()).expect("the system takes it");
        (id, floor, conn)
    };
    let asked = format!("GET {}, stopped", stopped.url);
    thread::scope(|threads| {
        // A write that is under way when it stops, unless it is faster than the signal.
        threads.spawn(|| {
            driver.change_at(&mut Conns::default(), &stopped.url, PROBED, false, false);
        });
        let mut probes: Vec<_> = (1..4).map(&mut probe).collect();
        stopped.program.freeze();
        let end = Instant::now() + time;
        while Instant::now() < end {
            // The newest rows, which it has not heard of, and old ones that may have changed.
            for back in 0..2 {
                probes.push(probe(driver.ledger.recent(back)));
            }
            probes.push(probe(1 + i64::try_from(probes.len() % 30).unwrap()));
            thread::sleep(time / 20);
        }
        stopped.program.thaw();
        for (id, floor, mut conn) in probes {
            let reply = conn.read_reply(false).expect("an answer after it wakes");
            driver.ledger.judge(&asked, id, floor, Some(&reply));
        }
    });
    driver.route_to(cluster.urls());
}

/// Stops an instance for each of these times.
fn stops(millis: &[u64]) {
    let mut cluster = Cluster::start();
    for &millis in millis {
        work_through(
            &format!("stopped for {millis} ms"),
            seed(),
            &mut cluster,
            |cluster, driver| {
                stop_for(cluster, driver, 0, Duration::from_millis(millis));
            },
        );
    }
}

#[test]
fn case_22_an_instance_stopped_for_longer_than_its_lease_refuses_nothing_when_it_resumes() {
    // The others acknowledge writes again when they have waited for it, after 4.5 s.
    let long: &[u64] = &[100, 4_000, 7_000, 10_000, 40_000];
    let count = usize::try_from(testbed::repetitions(3, 5)).unwrap();
    stops(&long[..count]);
}
