//! Time as the guard sees it, injected so that tests decide when it passes.
//!
//! Deadlines use a monotonic reading ([`Moment`]); only what crosses to another process (the end
//! of a sentinel, say) uses the wall clock. Nothing in this crate reads the system's clock except
//! through here.

use std::fmt;
use std::future::Future;
use std::ops::{Add, Sub};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;

/// A point on a [`Clock`]'s monotonic time line. Points of different clocks don't compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// Later than every moment a clock can reach: the end of what doesn't end.
    pub const NEVER: Moment = Moment(Duration::MAX);

    /// Nanoseconds since the clock's origin, as many as fit (584 years).
    pub(crate) fn as_nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }

    /// How long after `earlier` this is; zero if it isn't later.
    #[must_use]
    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;
    fn add(self, by: Duration) -> Moment {
        Moment(self.0.saturating_add(by))
    }
}

impl Sub<Duration> for Moment {
    type Output = Moment;
    fn sub(self, by: Duration) -> Moment {
        Moment(self.0.saturating_sub(by))
    }
}

/// How far [`Clock::coarse_now`] may lag behind [`Clock::now`]: one tick of the slowest kernel
/// timer in use (100 Hz).
pub const COARSE_LAG: Duration = Duration::from_millis(10);

/// Where time comes from.
pub trait TimeSource: Send + Sync + 'static {
    /// Time since the source's origin, never going back.
    fn elapsed(&self) -> Duration;
    /// The same, cheaper: at most [`COARSE_LAG`] behind [`elapsed`](Self::elapsed), never ahead
    /// of it.
    fn coarse_elapsed(&self) -> Duration {
        self.elapsed()
    }
    /// Milliseconds since the Unix epoch, as the wall clock has it.
    fn unix_ms(&self) -> u64;
    /// Resolves once [`elapsed`](Self::elapsed) has reached `at`.
    fn sleep_until(&self, at: Duration) -> BoxFuture<'static, ()>;
}

/// A shared handle on a [`TimeSource`].
#[derive(Clone)]
pub struct Clock(Arc<dyn TimeSource>);

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.0.elapsed()).finish()
    }
}

/// A wait that was cut short by its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl Clock {
    /// The system's clocks, through tokio's timer.
    #[must_use]
    pub fn system() -> Self {
        Self(Arc::new(System::new()))
    }

    /// A clock on a source of your own.
    #[must_use]
    pub fn new(source: impl TimeSource) -> Self {
        Self(Arc::new(source))
    }

    /// A clock that moves only when the returned [`ManualTime`] says so.
    #[must_use]
    pub fn manual() -> (Self, ManualTime) {
        let time = ManualTime::new();
        (Self(Arc::new(time.clone())), time)
    }

    /// Now, monotonic. Costs one read of the system's clock (tens of nanoseconds).
    #[must_use]
    pub fn now(&self) -> Moment {
        Moment(self.0.elapsed())
    }

    /// Now, at most [`COARSE_LAG`] late. On Linux some nanoseconds and no system call, elsewhere
    /// what [`now`](Self::now) costs.
    #[must_use]
    pub fn coarse_now(&self) -> Moment {
        Moment(self.0.coarse_elapsed())
    }

    /// Now, as Unix milliseconds.
    #[must_use]
    pub fn unix_ms(&self) -> u64 {
        self.0.unix_ms()
    }

    /// Waits for `duration`.
    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.now() + duration).await;
    }

    /// Waits until `at`; returns at once if that has passed.
    pub async fn sleep_until(&self, at: Moment) {
        self.0.sleep_until(at.0).await;
    }

    /// Runs `work` for at most `budget`, then drops it.
    ///
    /// # Errors
    /// [`Elapsed`] when the budget ran out first.
    pub async fn timeout<F: Future>(
        &self,
        budget: Duration,
        work: F,
    ) -> Result<F::Output, Elapsed> {
        self.timeout_at(self.now() + budget, work).await
    }

    /// Runs `work` until `at` at the latest, then drops it.
    ///
    /// # Errors
    /// [`Elapsed`] when `at` came first.
    pub async fn timeout_at<F: Future>(&self, at: Moment, work: F) -> Result<F::Output, Elapsed> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.sleep_until(at) => Err(Elapsed),
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

struct System {
    origin: tokio::time::Instant,
    /// The same moment on `CLOCK_MONOTONIC`, which `Instant` reads on Linux.
    #[cfg(target_os = "linux")]
    monotonic_origin: Duration,
}

impl System {
    fn new() -> Self {
        Self {
            origin: tokio::time::Instant::now(),
            // Read after `origin`, so that a coarse reading is never ahead of a fine one.
            #[cfg(target_os = "linux")]
            monotonic_origin: read(rustix::time::ClockId::Monotonic),
        }
    }
}

/// Reads a clock of the kernel through the vDSO.
#[cfg(target_os = "linux")]
fn read(clock: rustix::time::ClockId) -> Duration {
    // Monotonic clocks are never negative.
    Duration::try_from(rustix::time::clock_gettime(clock)).unwrap_or_default()
}

impl TimeSource for System {
    fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }

    #[cfg(target_os = "linux")]
    fn coarse_elapsed(&self) -> Duration {
        read(rustix::time::ClockId::MonotonicCoarse).saturating_sub(self.monotonic_origin)
    }

    fn unix_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn sleep_until(&self, at: Duration) -> BoxFuture<'static, ()> {
        // A sum past the timer's range means "practically never".
        match self.origin.checked_add(at) {
            Some(at) => Box::pin(tokio::time::sleep_until(at)),
            None => Box::pin(std::future::pending()),
        }
    }
}

/// Time that moves by hand. Its wall clock starts at 2020-01-01 and can be set apart from the
/// monotonic one, as a real machine's can.
#[derive(Clone, Debug)]
pub struct ManualTime {
    state: Arc<Mutex<ManualState>>,
    ticks: watch::Sender<Duration>,
}

#[derive(Debug)]
struct ManualState {
    elapsed: Duration,
    unix_ms: u64,
}

impl ManualTime {
    fn new() -> Self {
        let state = ManualState { elapsed: Duration::ZERO, unix_ms: 1_577_836_800_000 };
        Self { state: Arc::new(Mutex::new(state)), ticks: watch::Sender::new(Duration::ZERO) }
    }

    /// Moves both clocks forward and wakes the tasks that wait for it.
    pub fn advance(&self, by: Duration) {
        let now = {
            let mut state = self.state.lock();
            state.elapsed += by;
            state.unix_ms += u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
            state.elapsed
        };
        self.ticks.send_replace(now);
    }

    /// Sets the wall clock alone.
    pub fn set_unix_ms(&self, unix_ms: u64) {
        self.state.lock().unix_ms = unix_ms;
    }
}

impl TimeSource for ManualTime {
    fn elapsed(&self) -> Duration {
        self.state.lock().elapsed
    }

    fn unix_ms(&self) -> u64 {
        self.state.lock().unix_ms
    }

    fn sleep_until(&self, at: Duration) -> BoxFuture<'static, ()> {
        let mut ticks = self.ticks.subscribe();
        Box::pin(async move {
            // The sender lives in the clock; if that is gone, nothing can move time any more.
            if ticks.wait_for(|now| *now >= at).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_budget_ends_when_the_injected_clock_says_so() {
        let (clock, time) = Clock::manual();
        let waiting = tokio::spawn({
            let clock = clock.clone();
            async move { clock.timeout(Duration::from_secs(5), std::future::pending::<()>()).await }
        });
        tokio::task::yield_now().await;
        time.advance(Duration::from_millis(4_999));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        time.advance(Duration::from_millis(1));
        assert_eq!(waiting.await.unwrap(), Err(Elapsed));
    }

    #[tokio::test]
    async fn work_that_is_ready_wins_over_a_budget_of_zero() {
        let (clock, _time) = Clock::manual();
        assert_eq!(clock.timeout(Duration::ZERO, async { 7 }).await, Ok(7));
    }

    #[test]
    fn coarse_readings_are_never_ahead_and_follow() {
        let clock = Clock::system();
        let mut last = clock.coarse_now();
        for _ in 0..10_000 {
            let coarse = clock.coarse_now();
            assert!(coarse >= last && coarse <= clock.now());
            last = coarse;
        }
        let from = clock.now();
        while clock.coarse_now() <= from {
            std::thread::yield_now();
        }
    }

    #[test]
    fn moments_never_wrap() {
        let (clock, _time) = Clock::manual();
        let now = clock.now();
        assert_eq!(now - Duration::from_secs(1), now);
        assert!(now + Duration::MAX > now);
        assert_eq!(now.since(now + Duration::from_secs(1)), Duration::ZERO);
    }
}
