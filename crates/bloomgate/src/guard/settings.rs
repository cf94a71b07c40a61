//! The numbers of a guard, and what makes them nonsense.

use std::time::Duration;

use crate::error::Error;
use crate::gate::GateSettings;

/// What a write does when the shared cache can't take its write intent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStoreFailure {
    /// It fails before it starts; nothing stale can be served.
    #[default]
    FailWrite,
    /// It goes on, counted. In this process nothing stale is served; another process, or this one
    /// after a restart, may serve what the shared cache had until that expires.
    AllowStale,
}

/// All settings, checked.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) gate: GateSettings,
    pub(crate) value_ttl: Duration,
    pub(crate) null_ttl: Duration,
    /// Share of a time to live that chance may take away, 0 to 1.
    pub(crate) jitter: f64,
    pub(crate) store_timeout: Duration,
    pub(crate) load_timeout: Duration,
    pub(crate) queue_timeout: Duration,
    pub(crate) lease_ttl: Duration,
    pub(crate) write_window: Duration,
    pub(crate) permits: usize,
    pub(crate) unseen_permits: usize,
    pub(crate) on_store_failure: OnStoreFailure,
    pub(crate) stale_if_error: Duration,
    pub(crate) local_value_capacity: u64,
    pub(crate) local_null_capacity: u64,
}

/// What is taken off the write window so that End comes before it is over.
const WINDOW_RESERVE: Duration = Duration::from_secs(5);
const MIN_WINDOW: Duration = Duration::from_secs(1);
const MAX_WINDOW: Duration = Duration::from_secs(600);
const MAX_TTL: Duration = Duration::from_secs(366 * 24 * 3600);

impl Settings {
    /// How long a write's `run` may take, counted from before Begin: W − 5 s, or three quarters of
    /// a window shorter than 20 s.
    pub(crate) fn run_for(&self) -> Duration {
        self.write_window - WINDOW_RESERVE.min(self.write_window / 4)
    }

    /// The least that a lease must live for: all waits between taking and filling it.
    pub(crate) fn longest_fill(&self) -> Duration {
        // Nothing has been checked yet when this is first asked for.
        let asking = self.store_timeout.saturating_mul(2);
        asking.saturating_add(self.queue_timeout).saturating_add(self.load_timeout)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let within = |field, value: Duration, least: Duration, most: Duration| {
            if value < least || value > most {
                let problem = format!("{value:?} is not between {least:?} and {most:?}");
                return Err(Error::config(field, problem, "give a duration in that range"));
            }
            Ok(())
        };
        let millisecond = Duration::from_millis(1);
        within("value_ttl", self.value_ttl, millisecond, MAX_TTL)?;
        within("null_ttl", self.null_ttl, millisecond, MAX_TTL)?;
        within("store_timeout", self.store_timeout, millisecond, Duration::from_secs(60))?;
        within("load_timeout", self.load_timeout, millisecond, MAX_WINDOW)?;
        within("queue_timeout", self.queue_timeout, Duration::ZERO, MAX_WINDOW)?;
        within("write_window", self.write_window, MIN_WINDOW, MAX_WINDOW)?;
        within("stale_if_error", self.stale_if_error, Duration::ZERO, MAX_TTL)?;
        if !(0.0..1.0).contains(&self.jitter) {
            let problem = format!("{} is not in 0 ≤ jitter < 1", self.jitter);
            return Err(Error::config("jitter", problem, "0.1 takes up to a tenth off each time"));
        }
        for (field, value) in [
            ("max_concurrent_loads", self.permits as u64),
            ("max_unseen_loads", self.unseen_permits as u64),
            ("local_value_capacity", self.local_value_capacity),
            ("local_null_capacity", self.local_null_capacity),
        ] {
            if value == 0 {
                return Err(Error::config(field, "0 would let nothing through", "give at least 1"));
            }
        }
        if self.unseen_permits > self.permits {
            let problem =
                format!("{} is more than the {} permits in all", self.unseen_permits, self.permits);
            return Err(Error::config(
                "max_unseen_loads",
                problem,
                "give at most as many as loads",
            ));
        }
        if self.lease_ttl < self.longest_fill() {
            let problem = format!(
                "{:?} is shorter than the waits it must outlive, {:?} (twice store_timeout, \
                 queue_timeout and load_timeout)",
                self.lease_ttl,
                self.longest_fill()
            );
            return Err(Error::config("lease_ttl", problem, "leave it out, or give a longer one"));
        }
        if self.store_timeout * 2 > self.write_window - self.run_for() {
            let problem = format!(
                "{:?} leaves a write no time to end within the window of {:?}",
                self.store_timeout, self.write_window
            );
            return Err(Error::config(
                "store_timeout",
                problem,
                "shorten it or widen write_window",
            ));
        }
        Ok(())
    }
}
