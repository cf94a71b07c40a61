//! Writes through all instances while nothing is broken.

use crate::cluster::Cluster;

use crate::random::seed;
use crate::run::work_through;

#[test]
fn each_acknowledged_write_is_read_at_once_from_every_instance() {
    let mut cluster = Cluster::start();
    let writes = testbed::repetitions(300, 2_000);
    let counts = work_through("nothing broken", seed(), &mut cluster, |_, driver| {
        driver.until_written(writes);
    });
    assert!(counts.writes >= writes);
    assert_eq!(counts.failed_reads, 0);
}

#[test]
fn a_connection_cut_in_the_middle_of_a_write_leaves_no_row_refused_or_stale() {
    let mut cluster = Cluster::start();
    work_through("clients that leave", seed(), &mut cluster, |_, driver| {
        driver.abandons.store(true, std::sync::atomic::Ordering::Relaxed);
        driver.until_written(testbed::repetitions(60, 1_000));
        driver.abandons.store(false, std::sync::atomic::Ordering::Relaxed);
    });
}
