//! A circuit breaker: during an outage, only a few requests pay their budget.

use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::{Clock, Moment};

/// Failures in a row that open the breaker.
const MAX_FAILURES: u32 = 3;
/// Between two probes of an open breaker.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug)]
struct State {
    failures: u32,
    /// While open: when the next probe may go out.
    probe_at: Option<Moment>,
}

/// Closed: every request passes. Open, after three failures in a row: only one probe every quarter
/// of a second passes; its success closes the breaker.
#[derive(Debug)]
pub(crate) struct Breaker {
    state: Mutex<State>,
    clock: Clock,
}

/// The right to try once, to be given back with the outcome.
#[derive(Debug)]
pub(crate) struct Permit<'a>(&'a Breaker);

impl Breaker {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { state: Mutex::new(State { failures: 0, probe_at: None }), clock }
    }

    pub(crate) fn enter(&self) -> Option<Permit<'_>> {
        let mut state = self.state.lock();
        if let Some(probe_at) = state.probe_at {
            let now = self.clock.now();
            if now < probe_at {
                return None;
            }
            // This caller is the probe. If it is dropped without an outcome, the next one is due.
            state.probe_at = Some(now + PROBE_INTERVAL);
        }
        Some(Permit(self))
    }
}

impl Permit<'_> {
    pub(crate) fn succeeded(self) {
        *self.0.state.lock() = State { failures: 0, probe_at: None };
    }

    /// True if the breaker is open now.
    pub(crate) fn failed(self) -> bool {
        let mut state = self.0.state.lock();
        state.failures = state.failures.saturating_add(1);
        let is_open = state.failures >= MAX_FAILURES;
        if is_open {
            state.probe_at = Some(self.0.clock.now() + PROBE_INTERVAL);
        }
        is_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_after_failures_in_a_row_and_lets_one_probe_pass() {
        let (clock, time) = Clock::manual();
        let breaker = Breaker::new(clock);
        breaker.enter().unwrap().failed();
        breaker.enter().unwrap().failed();
        breaker.enter().unwrap().succeeded();
        for _ in 0..MAX_FAILURES {
            breaker.enter().unwrap().failed();
        }
        assert!(breaker.enter().is_none());
        time.advance(PROBE_INTERVAL);
        let probe = breaker.enter().unwrap();
        assert!(breaker.enter().is_none(), "one probe at a time");
        probe.succeeded();
        assert!(breaker.enter().is_some());
        assert!(breaker.enter().is_some());
    }

    #[test]
    fn a_probe_that_is_dropped_is_followed_by_another() {
        let (clock, time) = Clock::manual();
        let breaker = Breaker::new(clock);
        for _ in 0..MAX_FAILURES {
            breaker.enter().unwrap().failed();
        }
        time.advance(PROBE_INTERVAL);
        let _dropped = breaker.enter().unwrap();
        assert!(breaker.enter().is_none());
        time.advance(PROBE_INTERVAL);
        assert!(breaker.enter().is_some());
    }
}
