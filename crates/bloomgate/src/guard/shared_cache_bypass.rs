//! Keys that were written without a write intent, and so aren't read from the shared cache for a while.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::clock::{Clock, Moment};
use crate::key::KeyBytes;

/// Keys remembered one by one; with more, the whole shared cache is passed over.
const LIMIT: usize = 10_000;

#[derive(Debug, Default)]
struct State {
    keys: HashMap<KeyBytes, Moment>,
    everything_until: Option<Moment>,
}

/// What `AllowStale` writes left behind: until its old entry must have expired, such a key isn't
/// read from the shared cache.
#[derive(Debug)]
pub(crate) struct SharedCacheBypass {
    state: Mutex<State>,
    clock: Clock,
}

impl SharedCacheBypass {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { state: Mutex::default(), clock }
    }

    pub(crate) fn add(&self, key: KeyBytes, until: Moment) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        if state.keys.len() >= LIMIT {
            state.keys.retain(|_, until| now < *until);
        }
        if state.keys.len() >= LIMIT {
            state.everything_until = state.everything_until.max(Some(until));
        } else {
            state.keys.insert(key, until);
        }
    }

    pub(crate) fn contains(&self, key: &KeyBytes) -> bool {
        let mut state = self.state.lock();
        if state.keys.is_empty() && state.everything_until.is_none() {
            return false;
        }
        let now = self.clock.now();
        if state.everything_until.is_some_and(|until| now < until) {
            return true;
        }
        state.everything_until = None;
        match state.keys.get(key) {
            Some(until) if now < *until => true,
            Some(_) => {
                state.keys.remove(key);
                false
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn keys_are_covered_until_their_end_and_all_keys_once_there_are_too_many() {
        let (clock, time) = Clock::manual();
        let bypass = SharedCacheBypass::new(clock.clone());
        let until = clock.now() + Duration::from_secs(1);
        bypass.add(KeyBytes::of(&1_i64), until);
        assert!(bypass.contains(&KeyBytes::of(&1_i64)));
        assert!(!bypass.contains(&KeyBytes::of(&2_i64)));
        for id in 0..=LIMIT as i64 {
            bypass.add(KeyBytes::of(&id), until);
        }
        assert!(bypass.contains(&KeyBytes::of(&-1_i64)));
        time.advance(Duration::from_secs(1));
        assert!(!bypass.contains(&KeyBytes::of(&1_i64)));
        assert!(!bypass.contains(&KeyBytes::of(&-1_i64)));
    }
}
