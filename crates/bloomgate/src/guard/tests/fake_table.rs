//! A database in memory that keeps every state of each row.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// A row. Its version is the number of commits that touched its id so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) id: i64,
    pub(super) version: usize,
}

#[derive(Debug, Default)]
struct State {
    /// For each id whether a row existed after each commit; before the first one, none did.
    history: BTreeMap<i64, Vec<bool>>,
    /// The ids of all rows that exist.
    present: BTreeSet<i64>,
    last_assigned: i64,
}

/// The table.
#[derive(Clone, Debug, Default)]
pub(super) struct FakeTable(Arc<Mutex<State>>);

impl FakeTable {
    pub(super) fn with(ids: impl IntoIterator<Item = i64>) -> Self {
        let table = Self::default();
        for id in ids {
            table.commit(id);
        }
        table
    }

    /// A transaction whose changes are visible from its commit on.
    pub(super) fn begin(&self) -> Transaction {
        Transaction { table: self.clone(), changes: Vec::new() }
    }

    /// Inserts or overwrites a row in a transaction of its own; returns its version.
    pub(super) fn commit(&self, id: i64) -> usize {
        self.change(id, true)
    }

    /// Deletes a row in a transaction of its own; returns the version of its absence.
    pub(super) fn delete(&self, id: i64) -> usize {
        self.change(id, false)
    }

    fn change(&self, id: i64, exists: bool) -> usize {
        let mut state = self.0.lock();
        if exists {
            state.present.insert(id);
        } else {
            state.present.remove(&id);
        }
        let history = state.history.entry(id).or_default();
        history.push(exists);
        history.len()
    }

    pub(super) fn get(&self, id: i64) -> Option<Row> {
        let state = self.0.lock();
        let history = state.history.get(&id)?;
        let exists = *history.last()?;
        exists.then_some(Row { id, version: history.len() })
    }

    /// Number of commits that touched the id.
    pub(super) fn version(&self, id: i64) -> usize {
        self.0.lock().history.get(&id).map_or(0, Vec::len)
    }

    /// The ids of all rows that exist now, in their order.
    pub(super) fn ids(&self) -> Vec<i64> {
        self.0.lock().present.iter().copied().collect()
    }

    /// True if `seen` (a row, or none) was the state of the id at a version of at least `floor`.
    pub(super) fn is_no_older(&self, id: i64, seen: Option<Row>, floor: usize) -> bool {
        let state = self.0.lock();
        let no_commits = Vec::new();
        let history = state.history.get(&id).unwrap_or(&no_commits);
        let existed = |version: usize| version > 0 && history[version - 1];
        match seen {
            Some(row) => {
                let real = row.id == id && row.version <= history.len() && existed(row.version);
                real && row.version >= floor
            }
            None => (floor..=history.len()).any(|version| !existed(version)),
        }
    }
}

/// Changes that are not visible yet. Dropped, it is rolled back.
#[derive(Debug)]
pub(super) struct Transaction {
    table: FakeTable,
    changes: Vec<(i64, bool)>,
}

impl Transaction {
    /// Inserts a row under an id that the database assigns.
    pub(super) fn insert(&mut self) -> i64 {
        let id = {
            let mut state = self.table.0.lock();
            // Far from the ids that tests choose, and never given twice, rolled back or not.
            state.last_assigned = state.last_assigned.max(1_000_000) + 1;
            state.last_assigned
        };
        self.changes.push((id, true));
        id
    }

    pub(super) fn put(&mut self, id: i64) {
        self.changes.push((id, true));
    }

    pub(super) fn commit(self) {
        for (id, exists) in self.changes {
            self.table.change(id, exists);
        }
    }
}
