//! The number of sentinels that one instance keeps in the shared cache.

use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::{Clock, Moment};

/// Bounds the sentinels of this instance that are alive in the shared cache: a flood of distinct
/// absent ids through an open gate must not push rows out, nor fill the server's memory.
#[derive(Debug)]
pub(super) struct SentinelBudget {
    /// Sentinels that one window takes. One that was stored late in a window lives through the next
    /// one, so that two windows' are alive at a time.
    per_window: u64,
    /// The longest that a sentinel lives.
    window: Duration,
    clock: Clock,
    current: Mutex<Window>,
}

#[derive(Debug)]
struct Window {
    since: Moment,
    stored: u64,
}

impl SentinelBudget {
    /// For `alive` sentinels of at most `ttl` each.
    pub(super) fn new(alive: u64, ttl: Duration, clock: Clock) -> Self {
        let current = Mutex::new(Window { since: clock.now(), stored: 0 });
        Self { per_window: alive.div_ceil(2), window: ttl, clock, current }
    }

    /// True if one more sentinel may be stored.
    pub(super) fn has_room(&self) -> bool {
        self.window().stored < self.per_window
    }

    /// Takes the place of one sentinel; false if there is none.
    pub(super) fn take(&self) -> bool {
        let mut window = self.window();
        let has_room = window.stored < self.per_window;
        window.stored += u64::from(has_room);
        has_room
    }

    fn window(&self) -> parking_lot::MutexGuard<'_, Window> {
        let now = self.clock.now();
        let mut window = self.current.lock();
        if now.since(window.since) >= self.window {
            *window = Window { since: now, stored: 0 };
        }
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_sentinels_than_the_budget_are_alive_at_any_time() {
        let (clock, time) = Clock::manual();
        let ttl = Duration::from_secs(30);
        let budget = SentinelBudget::new(10, ttl, clock.clone());
        let mut stored: Vec<Moment> = Vec::new();
        for _ in 0..400 {
            time.advance(Duration::from_millis(700));
            while budget.has_room() {
                assert!(budget.take());
                stored.push(clock.now());
            }
            assert!(!budget.take());
            stored.retain(|at| clock.now().since(*at) < ttl);
            assert!(stored.len() <= 10, "{} are alive", stored.len());
        }
        assert!(!stored.is_empty(), "the budget doesn't come back");
    }
}
