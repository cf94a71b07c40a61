//! Keeps an outage from costing every request its budget.

use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::{Clock, Moment};

/// Failures in a row after which the breaker opens.
const FAILURES: u32 = 3;
/// How long an open breaker waits before it lets one request try again.
const PROBE_AFTER: Duration = Duration::from_millis(250);

#[derive(Debug)]
struct State {
    failures: u32,
    /// While open: when the next probe may go out.
    probe_at: Option<Moment>,
}

/// Closed: everyone passes. Open, after three failures in a row: nobody does, but for one probe
/// every quarter of a second, whose success closes it.
#[derive(Debug)]
pub(crate) struct Breaker {
    state: Mutex<State>,
    clock: Clock,
}

/// The right to try once; says how it went.
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
            // This caller is the probe. Should it vanish without a word, the next one comes due.
            state.probe_at = Some(now + PROBE_AFTER);
        }
        Some(Permit(self))
    }
}

impl Permit<'_> {
    pub(crate) fn succeeded(self) {
        *self.0.state.lock() = State { failures: 0, probe_at: None };
    }

    pub(crate) fn failed(self) {
        let mut state = self.0.state.lock();
        state.failures = state.failures.saturating_add(1);
        if state.failures >= FAILURES {
            state.probe_at = Some(self.0.clock.now() + PROBE_AFTER);
        }
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
        for _ in 0..FAILURES {
            breaker.enter().unwrap().failed();
        }
        assert!(breaker.enter().is_none());
        time.advance(PROBE_AFTER);
        let probe = breaker.enter().unwrap();
        assert!(breaker.enter().is_none(), "one probe at a time");
        probe.succeeded();
        assert!(breaker.enter().is_some());
        assert!(breaker.enter().is_some());
    }

    #[test]
    fn a_probe_that_vanishes_is_followed_by_another() {
        let (clock, time) = Clock::manual();
        let breaker = Breaker::new(clock);
        for _ in 0..FAILURES {
            breaker.enter().unwrap().failed();
        }
        time.advance(PROBE_AFTER);
        let _vanished = breaker.enter().unwrap();
        assert!(breaker.enter().is_none());
        time.advance(PROBE_AFTER);
        assert!(breaker.enter().is_some());
    }
}
