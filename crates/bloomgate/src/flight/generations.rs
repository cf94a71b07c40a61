//! The local generation of each key: moved by writes, compared before a publication.

use std::hash::{BuildHasher, RandomState};

use parking_lot::Mutex;

use crate::key::KeyBytes;

/// Number of stripes. Two keys that share one only make each other's loads go unpublished.
const STRIPES: usize = 4096;

/// Generations in a fixed number of stripes, so that clients' keys can't make it grow.
///
/// A stripe is a lock, not an atomic: "still the current generation? then publish" must be one
/// step, or a write could begin and end between the check and the publication.
#[derive(Debug)]
pub(crate) struct KeyGenerations {
    stripes: Box<[Mutex<u64>]>,
    /// Keyed at random, so that a client can't aim two keys at one stripe.
    hasher: RandomState,
}

impl KeyGenerations {
    pub(crate) fn new() -> Self {
        let stripes = (0..STRIPES).map(|_| Mutex::new(0)).collect();
        Self { stripes, hasher: RandomState::new() }
    }

    fn stripe(&self, key: &KeyBytes) -> &Mutex<u64> {
        // The remainder is below STRIPES, so it fits.
        &self.stripes[(self.hasher.hash_one(key) % STRIPES as u64) as usize]
    }

    pub(crate) fn current(&self, key: &KeyBytes) -> u64 {
        *self.stripe(key).lock()
    }

    /// Moves the key's generation and drops what is cached under the old one, as one step.
    pub(crate) fn advance(&self, key: &KeyBytes, forget: impl FnOnce()) {
        let mut generation = self.stripe(key).lock();
        *generation += 1;
        forget();
    }

    /// Moves every key's generation, then drops everything that is cached.
    pub(crate) fn advance_all(&self, forget: impl FnOnce()) {
        for stripe in &self.stripes {
            *stripe.lock() += 1;
        }
        // Nothing of an old generation is published after this point, so forgetting it all now
        // leaves nothing of it.
        forget();
    }

    /// Runs `publish` if the key is still of this generation; no write begins or ends meanwhile.
    pub(crate) fn publish_if(
        &self,
        key: &KeyBytes,
        generation: u64,
        publish: impl FnOnce(),
    ) -> bool {
        let current = self.stripe(key).lock();
        let still = *current == generation;
        if still {
            publish();
        }
        still
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Rule A3.
    #[test]
    fn no_generation_moves_while_a_value_is_published() {
        let generations = KeyGenerations::new();
        let key = KeyBytes::of(&1_i64);
        let mut published = false;
        assert!(generations.publish_if(&key, 0, || {
            published = generations.stripe(&key).try_lock().is_none();
        }));
        assert!(published, "the key could be written between the check and the publication");
        generations.advance(&key, || {});
        assert!(!generations.publish_if(&key, 0, || panic!("an old generation published")));
    }
}
