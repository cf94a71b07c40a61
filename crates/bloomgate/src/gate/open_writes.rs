//! The writes that have begun and not ended.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::key::KeyBytes;
use crate::ports::WriteId;

/// One open write of a key.
#[derive(Debug)]
struct OpenEntry {
    write: WriteId,
    /// False for an update or a delete, which must not fill the gate.
    admits: bool,
}

/// As many writes are open as are allowed.
#[derive(Debug)]
pub(crate) struct LimitReached {
    pub(crate) limit: usize,
}

/// The set of open writes, by key *and* write (rule A1): a write that fails must not erase the
/// entry of another on the same key.
#[derive(Debug)]
pub(crate) struct OpenWrites {
    by_key: Mutex<HashMap<KeyBytes, Vec<OpenEntry>>>,
    /// Number of open writes, so that readers pay one load while nothing is written.
    count: AtomicUsize,
    limit: usize,
}

impl OpenWrites {
    pub(crate) fn new(limit: usize) -> Self {
        Self { by_key: Mutex::default(), count: AtomicUsize::new(0), limit }
    }

    pub(crate) fn enter(
        &self,
        key: KeyBytes,
        write: WriteId,
        admits: bool,
    ) -> Result<(), LimitReached> {
        let mut by_key = self.by_key.lock();
        if self.count.load(Ordering::Relaxed) >= self.limit {
            return Err(LimitReached { limit: self.limit });
        }
        // Counted before it stands in the map: a reader that finds a count of 0 finds no entry.
        self.count.fetch_add(1, Ordering::SeqCst);
        by_key.entry(key).or_default().push(OpenEntry { write, admits });
        Ok(())
    }

    /// Removes this write's entry; false if it wasn't there.
    pub(crate) fn leave(&self, key: &KeyBytes, write: WriteId) -> bool {
        let mut by_key = self.by_key.lock();
        let Entry::Occupied(mut entry) = by_key.entry(key.clone()) else {
            return false;
        };
        let writes = entry.get_mut();
        let before = writes.len();
        writes.retain(|open| open.write != write);
        let removed = before - writes.len();
        if writes.is_empty() {
            entry.remove();
        }
        self.count.fetch_sub(removed, Ordering::SeqCst);
        removed > 0
    }

    pub(crate) fn is_open(&self, key: &KeyBytes) -> bool {
        self.count.load(Ordering::SeqCst) > 0 && self.by_key.lock().contains_key(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Every open key that a new generation must hold.
    pub(crate) fn for_each_admitted(&self, mut each: impl FnMut(&KeyBytes)) {
        for (key, writes) in self.by_key.lock().iter() {
            if writes.iter().any(|open| open.admits) {
                each(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: i64) -> KeyBytes {
        KeyBytes::of(&id)
    }

    #[test]
    fn a_second_write_that_ends_leaves_the_first_ones_entry() {
        let open = OpenWrites::new(10);
        let (first, second) = (WriteId::fresh(), WriteId::fresh());
        open.enter(key(1), first, true).unwrap();
        open.enter(key(1), second, true).unwrap();
        assert!(open.leave(&key(1), second));
        assert!(open.is_open(&key(1)));
        assert!(!open.leave(&key(1), second), "a write ends once");
        assert!(open.leave(&key(1), first));
        assert!(!open.is_open(&key(1)));
        assert_eq!(open.len(), 0);
    }

    #[test]
    fn the_limit_is_kept_and_given_back() {
        let open = OpenWrites::new(1);
        let first = WriteId::fresh();
        open.enter(key(1), first, true).unwrap();
        assert!(open.enter(key(2), WriteId::fresh(), true).is_err());
        open.leave(&key(1), first);
        open.enter(key(2), WriteId::fresh(), true).unwrap();
    }

    #[test]
    fn updates_are_open_but_not_handed_to_a_new_generation() {
        let open = OpenWrites::new(10);
        open.enter(key(1), WriteId::fresh(), false).unwrap();
        open.enter(key(2), WriteId::fresh(), true).unwrap();
        assert!(open.is_open(&key(1)));
        let mut admitted = Vec::new();
        open.for_each_admitted(|key| admitted.push(key.clone()));
        assert_eq!(admitted, [key(2)]);
    }
}
