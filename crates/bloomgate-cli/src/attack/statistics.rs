//! The statistics of a connection's requests, and their sum.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;

use super::traffic::Kind;

/// Latencies are kept in microseconds to three significant digits, whatever their size.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Requests of one kind.
#[derive(Clone, Debug)]
pub(crate) struct KindStatistics {
    /// Requests sent.
    pub(crate) sent: u64,
    /// Requests whose connection broke before the answer was complete.
    pub(crate) broken: u64,
    /// Requests without a full answer in time.
    pub(crate) timeouts: u64,
    /// Answered requests by status.
    pub(crate) statuses: BTreeMap<u16, u64>,
    latency: Histogram<u64>,
}

/// A few numbers of a latency distribution, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Latency {
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) p999: u64,
    pub(crate) max: u64,
}

impl KindStatistics {
    fn new() -> Result<Self, hdrhistogram::CreationError> {
        Ok(Self {
            sent: 0,
            broken: 0,
            timeouts: 0,
            statuses: BTreeMap::new(),
            latency: Histogram::new(SIGNIFICANT_DIGITS)?,
        })
    }

    /// Counts an answer.
    pub(crate) fn answered(&mut self, status: u16, latency: Duration) {
        *self.statuses.entry(status).or_default() += 1;
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        // The histogram grows as needed, so that any value fits.
        let recorded = self.latency.record(micros);
        debug_assert!(recorded.is_ok(), "{recorded:?}");
    }

    /// Answers, whatever their status.
    pub(crate) fn answers(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// Requests that were under way when the run was stopped.
    pub(crate) fn unanswered(&self) -> u64 {
        self.sent.saturating_sub(self.answers() + self.broken + self.timeouts)
    }

    /// Answers with a status of the 200s.
    pub(crate) fn successes(&self) -> u64 {
        self.statuses.range(200..300).map(|(_, count)| count).sum()
    }

    /// Answers with this status.
    pub(crate) fn with_status(&self, status: u16) -> u64 {
        self.statuses.get(&status).copied().unwrap_or_default()
    }

    /// Latency of the answered requests, if there are any.
    pub(crate) fn latency(&self) -> Option<Latency> {
        (!self.latency.is_empty()).then(|| Latency {
            p50: self.latency.value_at_quantile(0.5),
            p99: self.latency.value_at_quantile(0.99),
            p999: self.latency.value_at_quantile(0.999),
            max: self.latency.max(),
        })
    }

    fn add(&mut self, other: &KindStatistics) {
        self.sent += other.sent;
        self.broken += other.broken;
        self.timeouts += other.timeouts;
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        // An auto-resizing histogram can hold every value of another one.
        let added = self.latency.add(&other.latency);
        debug_assert!(added.is_ok(), "{added:?}");
    }
}

/// Requests of both kinds, and the connections.
#[derive(Clone, Debug)]
pub(crate) struct Statistics {
    pub(crate) attack: KindStatistics,
    pub(crate) legit: KindStatistics,
    /// Connections opened.
    pub(crate) connects: u64,
    /// Attempts to connect that failed.
    pub(crate) connect_failures: u64,
}

impl Statistics {
    /// Nothing counted yet. Fails only if there is no memory for the histograms.
    pub(crate) fn new() -> Result<Self, hdrhistogram::CreationError> {
        Ok(Self {
            attack: KindStatistics::new()?,
            legit: KindStatistics::new()?,
            connects: 0,
            connect_failures: 0,
        })
    }

    /// The statistics of one kind.
    pub(crate) fn of(&mut self, kind: Kind) -> &mut KindStatistics {
        match kind {
            Kind::Attack => &mut self.attack,
            Kind::Legit => &mut self.legit,
        }
    }

    /// Adds another connection's counts.
    pub(crate) fn add(&mut self, other: &Statistics) {
        self.attack.add(&other.attack);
        self.legit.add(&other.legit);
        self.connects += other.connects;
        self.connect_failures += other.connect_failures;
    }
}

/// Locks statistics. They are consistent after every step, so that a poisoned lock is harmless.
pub(crate) fn locked(statistics: &Mutex<Statistics>) -> MutexGuard<'_, Statistics> {
    statistics.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_connections_add_up() {
        let mut all = Statistics::new().unwrap();
        for latency in [100, 200, 300] {
            let mut one = Statistics::new().unwrap();
            one.connects = 1;
            let kind = one.of(Kind::Attack);
            kind.sent = 5;
            kind.broken = 1;
            kind.timeouts = 1;
            kind.answered(404, Duration::from_micros(latency));
            kind.answered(200, Duration::from_micros(latency));
            all.add(&one);
        }
        assert_eq!((all.attack.sent, all.attack.answers(), all.connects), (15, 6, 3));
        assert_eq!((all.attack.unanswered(), all.attack.successes()), (3, 3));
        assert_eq!((all.attack.with_status(404), all.attack.with_status(503)), (3, 0));
        assert_eq!(
            all.attack.latency().map(|latency| (latency.p50, latency.max)),
            Some((200, 300))
        );
        assert_eq!((all.legit.sent, all.legit.latency()), (0, None));
    }

    #[test]
    fn quantiles_hold_to_three_digits_far_out() {
        let mut kind = KindStatistics::new().unwrap();
        (1..=10_000).for_each(|millis| kind.answered(200, Duration::from_millis(millis)));
        let latency = kind.latency().unwrap();
        for (value, exact) in
            [(latency.p50, 5_000_000), (latency.p99, 9_900_000), (latency.p999, 9_990_000)]
        {
            assert!(value.abs_diff(exact) <= exact / 1000, "{value} for {exact}");
        }
    }
}
