//! Trait implementations of [`Bitmap`].

use std::fmt;

use super::Bitmap;
use crate::membership::{Family, Membership, Stats};

impl Default for Bitmap {
    fn default() -> Self {
        Self::new()
    }
}

impl Membership for Bitmap {
    fn contains(&self, key: &[u8]) -> bool {
        Bitmap::contains(self, key)
    }

    fn insert(&self, key: &[u8]) -> bool {
        Bitmap::insert(self, key)
    }

    fn contains_many(&self, keys: &[&[u8]], answers: &mut Vec<bool>) {
        Bitmap::contains_many(self, keys, answers);
    }

    fn insert_many(&self, keys: &[&[u8]]) {
        Bitmap::insert_many(self, keys);
    }

    fn stats(&self) -> Stats {
        Bitmap::stats(self)
    }

    fn family(&self) -> Family {
        Family::Bitmap
    }
}

impl fmt::Debug for Bitmap {
    /// Prints the statistics, no ids.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bitmap")
            .field("non_integer_keys", &self.has_non_integer_keys())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
