//! The settings of a member, checked against one another.

use std::time::Duration;

use crate::error::ConfigError;

/// How a member of a fleet keeps its lease, and how long it waits for others.
///
/// A write waits at most `fence_after` and a lease for a member that has fallen silent, once. All
/// members of a namespace should have the same lease, and their guards the same
/// [`write_window`](crate::GuardBuilder::write_window).
///
/// ```
/// use std::time::Duration;
///
/// use bloomgate::backplane::FleetSettings;
///
/// // A member that falls silent delays a write by at most 2 s.
/// let settings = FleetSettings::default()
///     .label("web 1")
///     .lease(Duration::from_millis(1_200))
///     .renew_every(Duration::from_millis(400))
///     .fence_after(Duration::from_millis(600));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct FleetSettings {
    pub(super) lease: Duration,
    pub(super) renew_every: Duration,
    pub(super) fence_after: Duration,
    pub(super) label: String,
    pub(super) log_capacity: u64,
    /// The guard's W and its budget for one step of the server.
    pub(super) write_window: Duration,
    pub(super) step_timeout: Duration,
}

impl Default for FleetSettings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(3),
            renew_every: Duration::from_secs(1),
            fence_after: Duration::from_millis(1_500),
            label: String::new(),
            log_capacity: 1_000_000,
            write_window: Duration::from_secs(30),
            step_timeout: Duration::from_millis(500),
        }
    }
}

impl FleetSettings {
    /// How long a lease lasts: 200 ms to 60 s. Default: 3 s. An instance whose link is lost goes on
    /// refusing for that long, and a write waits that long for one that has fallen silent.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Time between two renewals, at most half of the lease. Default: 1 s.
    pub fn renew_every(mut self, interval: Duration) -> Self {
        self.renew_every = interval;
        self
    }

    /// How long a write waits for a member before it takes that member's leases away; at least
    /// `renew_every`. Default: 1.5 s.
    pub fn fence_after(mut self, wait: Duration) -> Self {
        self.fence_after = wait;
        self
    }

    /// What this instance is called in the status documents of all; a label, at most 128 bytes.
    /// Default: none.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// The most entries that the log may have: at least 1,000. Default: 1,000,000, about 200 MB.
    /// Beyond it the oldest go, and an instance that had not read them resynchronises.
    pub fn log_capacity(mut self, entries: u64) -> Self {
        self.log_capacity = entries;
        self
    }

    /// With the guard's W, and its budget for one operation of the shared cache: a step of the log
    /// may take five times that, for nobody waits for most of them.
    ///
    /// # Errors
    /// When the settings contradict one another.
    pub(crate) fn checked_for_guard(
        mut self,
        write_window: Duration,
        store_timeout: Duration,
    ) -> Result<Self, ConfigError> {
        self.write_window = write_window;
        self.step_timeout = store_timeout * 5;
        self.check()?;
        Ok(self)
    }

    /// What a holder may count on: less than its lease by a hundredth, since clocks run at
    /// different rates.
    pub(super) fn lease_held(&self) -> Duration {
        self.lease - self.lease / 100
    }

    /// Refuses nonsense.
    fn check(&self) -> Result<(), ConfigError> {
        let refused = |field, problem: String, fix| Err(ConfigError::setting(field, problem, fix));
        let (least, most) = (Duration::from_millis(200), Duration::from_secs(60));
        if self.lease < least || self.lease > most {
            let problem = format!("{:?} is not between {least:?} and {most:?}", self.lease);
            return refused("fleet.lease", problem, "give a duration in that range");
        }
        if self.renew_every.is_zero() || self.renew_every > self.lease / 2 {
            let problem = format!(
                "{:?} is not above zero and at most half of the lease of {:?}",
                self.renew_every, self.lease
            );
            return refused("fleet.renew_every", problem, "a third of the lease is usual");
        }
        if self.fence_after < self.renew_every {
            let problem = format!(
                "{:?} is shorter than {:?}, the time between two renewals",
                self.fence_after, self.renew_every
            );
            return refused("fleet.fence_after", problem, "give one and a half times that");
        }
        let longest_wait = self.fence_after + waited_out(self.lease);
        if longest_wait >= self.write_window {
            let problem = format!(
                "a write may wait {longest_wait:?} for a silent member, which its window of {:?} \
                 doesn't leave",
                self.write_window
            );
            return refused("fleet.lease", problem, "shorten it or widen write_window");
        }
        if self.label.len() > 128 {
            let problem = format!("{} bytes are too many", self.label.len());
            return refused("fleet.label", problem, "give at most 128");
        }
        if self.log_capacity < 1_000 {
            let problem = format!("{} entries are too few", self.log_capacity);
            return refused("fleet.log_capacity", problem, "give at least 1000");
        }
        Ok(())
    }
}

/// How long to wait for a lease of this length that somebody else holds: longer by a hundredth, for
/// the rates of clocks.
pub(super) fn waited_out(lease: Duration) -> Duration {
    lease + lease / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_contradict_one_another_are_refused_by_name() {
        assert_eq!(FleetSettings::default().check().map_err(|error| error.to_string()), Ok(()));
        let seconds = Duration::from_secs;
        let of = FleetSettings::default;
        for (settings, field) in [
            (of().lease(Duration::ZERO), "fleet.lease"),
            (of().lease(seconds(61)), "fleet.lease"),
            (of().lease(seconds(1)), "fleet.renew_every"),
            (of().renew_every(Duration::ZERO), "fleet.renew_every"),
            (of().fence_after(Duration::from_millis(999)), "fleet.fence_after"),
            (of().fence_after(seconds(27)), "fleet.lease"),
            (of().label("x".repeat(129)), "fleet.label"),
            (of().log_capacity(999), "fleet.log_capacity"),
        ] {
            let error = settings.check().unwrap_err().to_string();
            assert!(error.contains(field), "{error}");
        }
    }

    #[test]
    fn a_lease_is_over_for_its_holder_before_it_is_for_who_waits() {
        let settings = FleetSettings::default();
        assert!(settings.lease_held() < settings.lease);
        assert!(settings.lease < waited_out(settings.lease));
    }
}
