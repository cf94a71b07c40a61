//! The pacing of requests: at once, or on a schedule that slow answers don't delay.

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// The clock thread sleeps at least this long, so that high rates come in small bursts rather than
/// wake it for every request.
const MIN_SLEEP: Duration = Duration::from_micros(50);
/// And at most this long, so that it notices the end of a run.
const MAX_SLEEP: Duration = Duration::from_millis(100);

/// Closed or open loop.
#[derive(Clone, Debug)]
pub(crate) enum Pace {
    /// A connection sends as soon as it has its answer.
    Closed,
    /// Requests are due at fixed moments, whether or not the server keeps up.
    Open(Arc<Schedule>),
}

impl Pace {
    /// Waits until another request is due; `false` when the run is over.
    pub(crate) async fn due(&self) -> bool {
        match self {
            Pace::Closed => true,
            Pace::Open(schedule) => match schedule.due.acquire().await {
                Ok(permit) => {
                    permit.forget();
                    true
                }
                Err(_closed) => false,
            },
        }
    }

    /// The moment from which the latency of request number `index` counts, if it is sent now.
    ///
    /// In an open loop this is the moment when it was due. Otherwise a slow server would get
    /// fewer requests just while it is slow, and the wait that real clients have would not be measured
    /// (coordinated omission).
    pub(crate) fn latency_start(&self, index: u64, now: Instant) -> Instant {
        match self {
            Pace::Closed => now,
            Pace::Open(schedule) => schedule.start + moment(index, schedule.rate),
        }
    }

    /// Ends all waits in [`due`](Self::due).
    pub(crate) fn end(&self) {
        if let Pace::Open(schedule) = self {
            schedule.due.close();
        }
    }
}

/// Requests per second since a start. A permit stands for a request that is due and not yet taken.
#[derive(Debug)]
pub(crate) struct Schedule {
    rate: NonZeroU64,
    start: Instant,
    due: Semaphore,
}

impl Schedule {
    /// Starts the clock now.
    ///
    /// A thread of its own keeps it, since tokio's timers are a millisecond coarse, which would
    /// count as latency. It ends when the schedule is closed.
    pub(crate) fn start(rate: NonZeroU64) -> io::Result<Arc<Self>> {
        let schedule = Arc::new(Self { rate, start: Instant::now(), due: Semaphore::new(0) });
        let clock = Arc::clone(&schedule);
        std::thread::Builder::new().name("pacing".to_owned()).spawn(move || clock.run())?;
        Ok(schedule)
    }

    fn run(&self) {
        let mut released = 0;
        while !self.due.is_closed() {
            let due = due_by(self.start.elapsed(), self.rate);
            // Semaphores count to 2^61, which no rate reaches in the life of a machine.
            self.due.add_permits((due - released) as usize);
            released = due;
            let next = moment(released, self.rate).saturating_sub(self.start.elapsed());
            std::thread::sleep(next.clamp(MIN_SLEEP, MAX_SLEEP));
        }
    }
}

/// How long after the start request number `index` is due, rounded up to a nanosecond.
fn moment(index: u64, rate: NonZeroU64) -> Duration {
    let nanos = (u128::from(index) * 1_000_000_000).div_ceil(u128::from(rate.get()));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// How many requests are due once `elapsed` has passed; the first is due at once.
fn due_by(elapsed: Duration, rate: NonZeroU64) -> u64 {
    let passed = elapsed.as_nanos() * u128::from(rate.get()) / 1_000_000_000;
    u64::try_from(passed).unwrap_or(u64::MAX).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_request_is_due_at_its_moment_and_not_before(index in 0u64..1 << 40, rate in 1u64..10_000_000) {
            let rate = NonZeroU64::new(rate).unwrap();
            let at = moment(index, rate);
            prop_assert!(due_by(at, rate) > index);
            if let Some(before) = at.checked_sub(Duration::from_nanos(1)) {
                prop_assert!(due_by(before, rate) <= index);
            }
        }
    }

    #[test]
    fn a_rate_counts_per_second() {
        let rate = NonZeroU64::new(200).unwrap();
        assert_eq!(moment(0, rate), Duration::ZERO);
        assert_eq!(moment(1, rate), Duration::from_millis(5));
        assert_eq!(moment(200, rate), Duration::from_secs(1));
        assert_eq!(due_by(Duration::from_secs(1), rate), 201);
    }

    #[tokio::test]
    async fn latency_latency_start_the_moment_a_request_was_due() {
        let rate = NonZeroU64::new(1000).unwrap();
        let schedule = Schedule::start(rate).unwrap();
        let start = schedule.start;
        let pace = Pace::Open(schedule);
        // Even if every connection is busy for ten seconds.
        let late = start + Duration::from_secs(10);
        assert_eq!(pace.latency_start(3, late), start + Duration::from_millis(3));
        assert_eq!(Pace::Closed.latency_start(3, late), late);
        pace.end();
    }

    #[tokio::test]
    async fn requests_are_released_no_earlier_than_due() {
        let pace = Pace::Open(Schedule::start(NonZeroU64::new(1000).unwrap()).unwrap());
        for index in 0..20 {
            assert!(pace.due().await);
            let now = Instant::now();
            assert!(pace.latency_start(index, now) <= now);
        }
        pace.end();
        // Even if more were released before the end.
        assert!(!pace.due().await);
    }
}
