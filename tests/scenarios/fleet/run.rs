//! A fault in the middle of the clients' work, and the counts of what they saw.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::driver::{Driver, WRITERS};
use crate::ledger::Counts;
use crate::random::Random;
use crate::service::CEILING;

/// Lets the clients work while `fault` happens, until every instance refuses again and writes are
/// acknowledged again. Prints what they saw, and fails on any refusal of a row, any stale answer, and
/// any wrong one.
pub(crate) fn work_through(
    what: &str,
    seed: u64,
    cluster: &mut Cluster,
    fault: impl FnOnce(&mut Cluster, &Driver),
) -> Counts {
    let driver = Driver::new(cluster);
    let mut open_for = Duration::ZERO;
    thread::scope(|threads| {
        let driver = &driver;
        // The clients end also when a check fails.
        let _end = End(driver);
        for writer in 0..WRITERS {
            let random = Random::new(seed.wrapping_mul(31).wrapping_add(writer as u64));
            threads.spawn(move || driver.write(writer, random));
        }
        threads.spawn(|| driver.attack());
        threads.spawn(|| driver.watch());
        driver.until_written(30);
        let began = Instant::now();
        fault(cluster, driver);
        driver.until_written(30);
        let end = Instant::now() + CEILING;
        // All at once, and not only until the next renewal.
        let mut since = Instant::now();
        while since.elapsed() < Duration::from_millis(1_500) {
            if !driver.look() {
                since = Instant::now();
            }
            assert!(Instant::now() < end, "the gates don't close again");
            thread::sleep(Duration::from_millis(50));
        }
        if let Some(last) = driver.watch.lock().unwrap().last_open {
            open_for = last.saturating_duration_since(began);
        }
    });
    driver.read_all(cluster);
    for service in &cluster.services {
        assert!(!service.program.stderr().contains("panicked"), "{}", service.program.stderr());
    }
    let counts = driver.ledger.counts();
    let watch = driver.watch.lock().unwrap();
    let loads: u64 = watch.loads.values().map(|(first, last)| last - first).sum();
    let absent = driver.absent.load(Ordering::Relaxed);
    println!(
        "{what}: {} writes, {} failed; {} reads, {} failed; {} refusals, {} stale; all refuse after \
         {:.1} s; {:.0} loads without a row per 1,000 absent ids ({loads} of {absent})",
        counts.writes,
        counts.failed_writes,
        counts.reads,
        counts.failed_reads,
        counts.refusals,
        counts.stale,
        open_for.as_secs_f64(),
        loads as f64 * 1_000.0 / absent.max(1) as f64,
    );
    assert!(counts.wrong.is_empty(), "{what}: {:#?}", counts.wrong);
    assert_eq!((counts.refusals, counts.stale), (0, 0));
    counts
}

/// Ends the clients.
struct End<'a>(&'a Driver);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}
