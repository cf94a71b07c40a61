//! A limit on repeated log lines.

use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::{Clock, Moment};

/// Between two lines about the same thing.
const SILENCE: Duration = Duration::from_secs(5);

/// Says that something failed once in a while, with how often it failed meanwhile.
#[derive(Debug)]
pub(crate) struct LogLimiter {
    state: Mutex<State>,
    clock: Clock,
}

#[derive(Debug, Default)]
struct State {
    last: Option<Moment>,
    unsaid: u64,
}

impl LogLimiter {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { state: Mutex::default(), clock }
    }

    /// Calls `say` with the number of events since it was last called, if that was a while ago.
    pub(crate) fn say(&self, say: impl FnOnce(u64)) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        state.unsaid += 1;
        if state.last.is_none_or(|last| now.since(last) >= SILENCE) {
            let events = state.unsaid;
            *state = State { last: Some(now), unsaid: 0 };
            drop(state);
            say(events);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_summed_up() {
        let (clock, time) = Clock::manual();
        let limiter = LogLimiter::new(clock);
        let mut said = Vec::new();
        for _ in 0..1_000 {
            limiter.say(|events| said.push(events));
        }
        time.advance(SILENCE);
        limiter.say(|events| said.push(events));
        assert_eq!(said, [1, 1_000]);
    }
}
