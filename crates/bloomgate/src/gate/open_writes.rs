//! The set of open writes.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::clock::{Clock, Moment};
use crate::key::KeyBytes;
use crate::ports::{PeerWrite, WriteId};

/// One open write of a key.
#[derive(Debug)]
struct OpenEntry {
    write: WriteId,
    /// False for an update or a delete, which must not fill the gate.
    admits: bool,
    deadline: Moment,
}

/// As many writes are open as are allowed.
#[derive(Debug)]
pub(crate) struct LimitReached {
    pub(crate) limit: usize,
}

/// The set of open writes, by key *and* write (rule A1): a write that fails must not erase the
/// entry of another on the same key.
///
/// An entry lapses by the clock at its deadline (rule A6): the task that would remove it may have
/// died with its runtime.
#[derive(Debug)]
pub(crate) struct OpenWrites {
    by_key: Mutex<HashMap<KeyBytes, Vec<OpenEntry>>>,
    /// Number of entries, so that readers pay one load while nothing is written.
    count: AtomicUsize,
    limit: usize,
    clock: Clock,
}

impl OpenWrites {
    pub(crate) fn new(limit: usize, clock: Clock) -> Self {
        Self { by_key: Mutex::default(), count: AtomicUsize::new(0), limit, clock }
    }

    /// Adds a write. One that is in already, which another instance may announce again, stays
    /// until the later of its deadlines.
    pub(crate) fn enter(&self, write: &PeerWrite) -> Result<(), LimitReached> {
        let mut by_key = self.by_key.lock();
        if let Some(open) = by_key
            .get_mut(&write.key)
            .and_then(|writes| writes.iter_mut().find(|open| open.write == write.write))
        {
            open.deadline = open.deadline.max(write.deadline);
            open.admits |= write.admits;
            return Ok(());
        }
        if self.count.load(Ordering::Relaxed) >= self.limit {
            self.remove_lapsed(&mut by_key);
        }
        if self.count.load(Ordering::Relaxed) >= self.limit {
            return Err(LimitReached { limit: self.limit });
        }
        // Counted before it stands in the map: a reader that finds a count of 0 finds no entry.
        self.count.fetch_add(1, Ordering::SeqCst);
        by_key.entry(write.key.clone()).or_default().push(OpenEntry {
            write: write.write,
            admits: write.admits,
            deadline: write.deadline,
        });
        Ok(())
    }

    /// Every write that is open now.
    pub(crate) fn list(&self) -> Vec<PeerWrite> {
        let now = self.clock.now();
        let by_key = self.by_key.lock();
        let of_key = |(key, writes): (&KeyBytes, &Vec<OpenEntry>)| {
            let open = writes.iter().filter(|open| now < open.deadline);
            let write = |open: &OpenEntry| {
                PeerWrite::new(key.clone(), open.write, open.admits, open.deadline)
            };
            open.map(write).collect::<Vec<_>>()
        };
        by_key.iter().flat_map(of_key).collect()
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

    fn remove_lapsed(&self, by_key: &mut HashMap<KeyBytes, Vec<OpenEntry>>) {
        let now = self.clock.now();
        let mut removed = 0;
        by_key.retain(|_, writes| {
            let before = writes.len();
            writes.retain(|open| now < open.deadline);
            removed += before - writes.len();
            !writes.is_empty()
        });
        self.count.fetch_sub(removed, Ordering::SeqCst);
    }

    pub(crate) fn is_open(&self, key: &KeyBytes) -> bool {
        if self.count.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let by_key = self.by_key.lock();
        by_key.get(key).is_some_and(|writes| {
            let now = self.clock.now();
            writes.iter().any(|open| now < open.deadline)
        })
    }

    /// Number of writes that are open now.
    pub(crate) fn len(&self) -> usize {
        if self.count.load(Ordering::SeqCst) > 0 {
            self.remove_lapsed(&mut self.by_key.lock());
        }
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
    use std::time::Duration;

    use super::*;

    fn key(id: i64) -> KeyBytes {
        KeyBytes::of(&id)
    }

    fn write(id: i64, admits: bool, deadline: Moment) -> PeerWrite {
        PeerWrite::new(key(id), WriteId::fresh(), admits, deadline)
    }

    #[test]
    fn a_second_write_that_ends_leaves_the_first_ones_entry() {
        let open = OpenWrites::new(10, Clock::system());
        let (first, second) = (write(1, true, Moment::NEVER), write(1, true, Moment::NEVER));
        open.enter(&first).unwrap();
        open.enter(&second).unwrap();
        assert!(open.leave(&key(1), second.write));
        assert!(open.is_open(&key(1)));
        assert!(!open.leave(&key(1), second.write), "a write ends once");
        assert!(open.leave(&key(1), first.write));
        assert!(!open.is_open(&key(1)));
        assert_eq!(open.len(), 0);
    }

    #[test]
    fn a_write_that_is_announced_again_has_one_entry_with_the_later_deadline() {
        let (clock, time) = Clock::manual();
        let open = OpenWrites::new(1, clock.clone());
        let second = Duration::from_secs(1);
        let mut write = write(1, false, clock.now() + second);
        open.enter(&write).unwrap();
        (write.deadline, write.admits) = (clock.now() + second * 2, true);
        open.enter(&write).unwrap();
        time.advance(second);
        assert!(open.is_open(&key(1)));
        assert_eq!(open.list(), [write.clone()]);
        assert!(open.leave(&key(1), write.write));
        assert_eq!((open.len(), open.is_open(&key(1))), (0, false));
    }

    #[test]
    fn the_limit_is_kept_and_given_back() {
        let open = OpenWrites::new(1, Clock::system());
        let first = write(1, true, Moment::NEVER);
        open.enter(&first).unwrap();
        assert!(open.enter(&write(2, true, Moment::NEVER)).is_err());
        open.leave(&key(1), first.write);
        open.enter(&write(2, true, Moment::NEVER)).unwrap();
    }

    #[test]
    fn entries_lapse_by_the_clock_without_a_task() {
        let (clock, time) = Clock::manual();
        let open = OpenWrites::new(1, clock.clone());
        open.enter(&write(1, true, clock.now() + Duration::from_secs(30))).unwrap();
        time.advance(Duration::from_secs(29));
        assert!(open.is_open(&key(1)));
        assert!(open.enter(&write(2, true, Moment::NEVER)).is_err());
        time.advance(Duration::from_secs(1));
        assert!(!open.is_open(&key(1)));
        open.enter(&write(2, true, Moment::NEVER)).unwrap();
        assert_eq!(open.len(), 1);
    }

    #[test]
    fn updates_are_open_but_not_handed_to_a_new_generation() {
        let open = OpenWrites::new(10, Clock::system());
        open.enter(&write(1, false, Moment::NEVER)).unwrap();
        open.enter(&write(2, true, Moment::NEVER)).unwrap();
        assert!(open.is_open(&key(1)));
        let mut admitted = Vec::new();
        open.for_each_admitted(|key| admitted.push(key.clone()));
        assert_eq!(admitted, [key(2)]);
    }
}
