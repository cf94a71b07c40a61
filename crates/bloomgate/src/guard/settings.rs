//! The numbers of a guard, and what makes them nonsense.

use std::time::Duration;

use crate::error::ConfigError;

/// What a write does when the shared cache can't take its write intent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnStoreFailure {
    /// It fails before it starts; nothing stale can be served.
    #[default]
    FailWrite,
    /// It goes on, counted. In this process nothing stale is served; another process, or this one
    /// after a restart, may serve what the shared cache had until that expires.
    AllowStale,
}

/// All settings: as the user gave them in [`GuardBuilder`](super::GuardBuilder), and checked once
/// the guard is built.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) value_ttl: Duration,
    pub(crate) null_ttl: Duration,
    /// Share of a time to live that may be taken away at random, 0 to 1.
    pub(crate) jitter: f64,
    pub(crate) store_timeout: Duration,
    pub(crate) load_timeout: Duration,
    pub(crate) queue_timeout: Duration,
    /// Zero until it is worked out, where the user gave none.
    pub(crate) lease_ttl: Duration,
    pub(crate) write_window: Duration,
    pub(crate) ready_within: Duration,
    pub(crate) max_concurrent_loads: usize,
    /// Zero until it is worked out, where the user gave none.
    pub(crate) max_unseen_loads: usize,
    pub(crate) on_store_failure: OnStoreFailure,
    pub(crate) stale_if_error: Duration,
    pub(crate) local_value_capacity: u64,
    pub(crate) local_null_capacity: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            value_ttl: Duration::from_secs(30 * 60),
            null_ttl: Duration::from_secs(30),
            jitter: 0.1,
            store_timeout: Duration::from_millis(100),
            load_timeout: Duration::from_secs(2),
            queue_timeout: Duration::from_millis(250),
            lease_ttl: Duration::ZERO,
            write_window: Duration::from_secs(30),
            ready_within: Duration::from_secs(30),
            max_concurrent_loads: 32,
            max_unseen_loads: 0,
            on_store_failure: OnStoreFailure::default(),
            stale_if_error: Duration::from_secs(60 * 60),
            local_value_capacity: 10_000,
            local_null_capacity: 100_000,
        }
    }
}

/// Settings whose default depends on others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given {
    pub(crate) lease_ttl: Option<Duration>,
    pub(crate) max_unseen_loads: Option<usize>,
}

/// What a lease lives longer than the waits it must outlive.
const LEASE_MARGIN: Duration = Duration::from_millis(500);
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

    /// Works out what wasn't given, and refuses nonsense. `given` are the settings that have no
    /// default of their own.
    pub(crate) fn checked(mut self, given: Given) -> Result<Self, ConfigError> {
        let default_lease = self.longest_fill().saturating_add(LEASE_MARGIN);
        self.lease_ttl = given.lease_ttl.unwrap_or(default_lease);
        let default_unseen = (self.max_concurrent_loads / 4).max(1);
        self.max_unseen_loads = given.max_unseen_loads.unwrap_or(default_unseen);
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let within = |field, value: Duration, least: Duration, most: Duration| {
            if value < least || value > most {
                let problem = format!("{value:?} is not between {least:?} and {most:?}");
                return Err(ConfigError::setting(field, problem, "give a duration in that range"));
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
        within("ready_within", self.ready_within, Duration::ZERO, MAX_WINDOW)?;
        within("stale_if_error", self.stale_if_error, Duration::ZERO, MAX_TTL)?;
        if !(0.0..1.0).contains(&self.jitter) {
            let problem = format!("{} is not in 0 ≤ jitter < 1", self.jitter);
            return Err(ConfigError::setting(
                "jitter",
                problem,
                "0.1 takes up to a tenth off each time",
            ));
        }
        for (field, value) in [
            ("max_concurrent_loads", self.max_concurrent_loads as u64),
            ("max_unseen_loads", self.max_unseen_loads as u64),
            ("local_value_capacity", self.local_value_capacity),
            ("local_null_capacity", self.local_null_capacity),
        ] {
            if value == 0 {
                return Err(ConfigError::setting(
                    field,
                    "0 would let nothing through",
                    "give at least 1",
                ));
            }
        }
        if self.max_unseen_loads > self.max_concurrent_loads {
            let problem = format!(
                "{} is more than the {} permits in all",
                self.max_unseen_loads, self.max_concurrent_loads
            );
            return Err(ConfigError::setting(
                "max_unseen_loads",
                problem,
                "give at most max_concurrent_loads",
            ));
        }
        if self.lease_ttl < self.longest_fill() {
            let problem = format!(
                "{:?} is shorter than the waits it must outlive, {:?} (twice store_timeout, \
                 queue_timeout and load_timeout)",
                self.lease_ttl,
                self.longest_fill()
            );
            return Err(ConfigError::setting(
                "lease_ttl",
                problem,
                "leave it out, or give a longer one",
            ));
        }
        if self.store_timeout * 2 > self.write_window - self.run_for() {
            let problem = format!(
                "{:?} leaves a write no time to end within the window of {:?}",
                self.store_timeout, self.write_window
            );
            return Err(ConfigError::setting(
                "store_timeout",
                problem,
                "shorten it or widen write_window",
            ));
        }
        Ok(())
    }
}
