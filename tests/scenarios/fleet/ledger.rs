//! What the clients of a fleet know of its rows, and the judgement of answers by it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use testbed::net::Reply;

/// Changes of all rows have numbers; a row holds that of its last change in its name.
type Version = u64;

/// The prefix of the names of changed rows.
const NAME: &str = "change ";

/// A row as its writers know it.
#[derive(Clone, Default)]
struct Row {
    /// The last change that was acknowledged.
    floor: Version,
    /// All changes that may have been made, and whether each is the deletion.
    changes: BTreeMap<Version, bool>,
    /// Until when a change of unknown outcome may still come.
    rests_until: Option<Instant>,
}

/// A change under way.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    pub(crate) version: Version,
}

/// What became of a change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Acknowledged,
    /// The service says that nothing was written.
    NotWritten,
    /// An error, or no answer: it may have been made, and may be made within the write window.
    Unknown,
}

/// Numbers that the scenarios print and check.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) writes: u64,
    pub(crate) failed_writes: u64,
    pub(crate) reads: u64,
    pub(crate) failed_reads: u64,
    /// Answers 404 for a row that exists.
    pub(crate) refusals: u64,
    /// Answers that are older than a change that was acknowledged before the request was sent.
    pub(crate) stale: u64,
    /// Each of the last two, and answers that no request may have.
    pub(crate) wrong: Vec<String>,
}

#[derive(Default)]
struct State {
    rows: BTreeMap<i64, Row>,
    last: Version,
    counts: Counts,
}

/// The rows and counts of one scenario.
pub(crate) struct Ledger {
    state: Mutex<State>,
    /// How long a change of unknown outcome may take.
    window: Duration,
}

impl Ledger {
    /// With the rows `1..=rows`, which nobody has changed.
    pub(crate) fn new(rows: i64, window: Duration) -> Self {
        let unchanged = || Row { changes: BTreeMap::from([(0, false)]), ..Row::default() };
        let rows = (1..=rows).map(|id| (id, unchanged())).collect();
        Self { state: Mutex::new(State { rows, ..State::default() }), window }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the next creation, whose id isn't known yet.
    pub(crate) fn next_version(&self) -> Version {
        let mut state = self.state();
        state.last += 1;
        state.last
    }

    /// The name of a row with this change.
    pub(crate) fn name(version: Version) -> String {
        format!("{NAME}{version}")
    }

    /// Notes a row that was created.
    pub(crate) fn created(&self, id: i64, version: Version) {
        let mut state = self.state();
        state.counts.writes += 1;
        let row =
            Row { floor: version, changes: BTreeMap::from([(version, false)]), ..Row::default() };
        if state.rows.insert(id, row).is_some() {
            state.counts.wrong.push(format!("{id} was created twice"));
        }
    }

    /// Notes a creation that failed.
    pub(crate) fn not_created(&self) {
        self.state().counts.failed_writes += 1;
    }

    /// Starts a change; `None` while an earlier one may still come, and once the row was deleted.
    pub(crate) fn begin(&self, id: i64, deletes: bool) -> Option<Change> {
        let mut state = self.state();
        let version = state.last + 1;
        let row = state.rows.get_mut(&id)?;
        if row.changes.get(&row.floor).copied().unwrap_or(true)
            || row.rests_until.is_some_and(|end| Instant::now() < end)
        {
            return None;
        }
        row.rests_until = None;
        row.changes.insert(version, deletes);
        state.last = version;
        Some(Change { version })
    }

    /// Ends a change.
    pub(crate) fn end(&self, id: i64, change: Change, outcome: Outcome) {
        let mut state = self.state();
        match outcome {
            Outcome::Acknowledged => state.counts.writes += 1,
            _ => state.counts.failed_writes += 1,
        }
        let Some(row) = state.rows.get_mut(&id) else { return };
        match outcome {
            Outcome::Acknowledged => row.floor = change.version,
            Outcome::NotWritten => {
                row.changes.remove(&change.version);
            }
            Outcome::Unknown => row.rests_until = Some(Instant::now() + self.window),
        }
    }

    /// The oldest change of a row that an answer to a request sent now may show.
    pub(crate) fn floor(&self, id: i64) -> Version {
        self.state().rows.get(&id).map_or(0, |row| row.floor)
    }

    /// Counts and judges an answer for a row to a request that was sent when [`floor`](Self::floor)
    /// was this. Returns whether it was an answer of the row's state.
    pub(crate) fn judge(
        &self,
        asked: &str,
        id: i64,
        floor: Version,
        reply: Option<&Reply>,
    ) -> bool {
        let mut state = self.state();
        state.counts.reads += 1;
        let Some(reply) = reply.filter(|reply| reply.status != 503) else {
            state.counts.failed_reads += 1;
            return false;
        };
        let Some(row) = state.rows.get(&id) else { return false };
        let seen = number_of(reply);
        let allowed = match reply.status {
            404 => row.changes.range(floor..).any(|(_, deletes)| *deletes),
            200 => seen.is_some_and(|seen| seen >= floor && row.changes.get(&seen) == Some(&false)),
            _ => false,
        };
        if !allowed {
            let changes = &row.changes;
            let text = format!(
                "{asked} {id}: {} {seen:?}, acknowledged {floor}, changes {changes:?}: {}",
                reply.status,
                reply.text()
            );
            match reply.status {
                404 => state.counts.refusals += 1,
                _ => state.counts.stale += 1,
            }
            state.counts.wrong.push(text);
        }
        true
    }

    /// Notes an answer that no request may have.
    pub(crate) fn wrong(&self, text: String) {
        self.state().counts.wrong.push(text);
    }

    /// The newest row but `back`.
    pub(crate) fn recent(&self, back: usize) -> i64 {
        let state = self.state();
        state.rows.keys().rev().nth(back).copied().unwrap_or(1)
    }

    /// Starts the counts at 0.
    pub(crate) fn reset_counts(&self) {
        self.state().counts = Counts::default();
    }

    pub(crate) fn counts(&self) -> Counts {
        self.state().counts.clone()
    }

    /// All rows that were ever known.
    pub(crate) fn ids(&self) -> Vec<i64> {
        self.state().rows.keys().copied().collect()
    }
}

/// The last change of a row in an answer; 0 for a row that nobody has changed.
pub(crate) fn number_of(reply: &Reply) -> Option<Version> {
    let product: Value = serde_json::from_slice(&reply.body).ok()?;
    let name = product["name"].as_str()?;
    name.strip_prefix(NAME).map_or(Some(0), |number| number.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reply as a server sends it.
    fn reply(status: u16, version: Version) -> Reply {
        let body = format!("{{\"name\":\"{}\"}}", Ledger::name(version));
        Reply {
            status,
            headers: Vec::new(),
            body: body.clone().into_bytes(),
            raw: body.into_bytes(),
        }
    }

    /// A ledger whose row 1 was changed, and the number of that change.
    fn changed() -> (Ledger, Version) {
        let ledger = Ledger::new(3, Duration::ZERO);
        let change = ledger.begin(1, false).unwrap();
        ledger.end(1, change, Outcome::Acknowledged);
        (ledger, change.version)
    }

    #[test]
    fn an_answer_older_than_the_acknowledged_change_is_stale() {
        let (ledger, version) = changed();
        assert!(ledger.judge("a", 1, version, Some(&reply(200, version))));
        assert_eq!(ledger.counts().stale, 0);
        ledger.judge("a", 1, version, Some(&reply(200, version - 1)));
        assert_eq!((ledger.counts().stale, ledger.counts().refusals), (1, 0));
    }

    #[test]
    fn a_404_for_a_row_that_nobody_deleted_is_a_refusal() {
        let (ledger, version) = changed();
        ledger.judge("a", 1, version, Some(&reply(404, 0)));
        assert_eq!((ledger.counts().stale, ledger.counts().refusals), (0, 1));
    }

    #[test]
    fn an_unknown_change_allows_both_until_the_next_acknowledged_one() {
        let (ledger, version) = changed();
        let deletion = ledger.begin(1, true).unwrap();
        ledger.end(1, deletion, Outcome::Unknown);
        ledger.judge("a", 1, version, Some(&reply(404, 0)));
        ledger.judge("a", 1, version, Some(&reply(200, version)));
        assert!(ledger.counts().wrong.is_empty());
        let next = ledger.begin(1, false).unwrap();
        ledger.end(1, next, Outcome::Acknowledged);
        ledger.judge("a", 1, ledger.floor(1), Some(&reply(404, 0)));
        assert_eq!(ledger.counts().refusals, 1);
    }

    #[test]
    fn a_change_that_was_not_written_must_not_show() {
        let (ledger, version) = changed();
        let change = ledger.begin(1, false).unwrap();
        ledger.end(1, change, Outcome::NotWritten);
        ledger.judge("a", 1, version, Some(&reply(200, change.version)));
        assert_eq!(ledger.counts().stale, 1);
    }

    #[test]
    fn a_deleted_row_must_not_come_back() {
        let (ledger, version) = changed();
        let deletion = ledger.begin(1, true).unwrap();
        ledger.end(1, deletion, Outcome::Acknowledged);
        ledger.judge("a", 1, ledger.floor(1), Some(&reply(404, 0)));
        assert_eq!(ledger.counts().wrong.len(), 0);
        ledger.judge("a", 1, ledger.floor(1), Some(&reply(200, version)));
        assert_eq!(ledger.counts().stale, 1);
        assert!(ledger.begin(1, false).is_none());
    }

    #[test]
    fn a_row_rests_while_a_change_of_unknown_outcome_may_come() {
        let ledger = Ledger::new(1, Duration::from_secs(600));
        let change = ledger.begin(1, false).unwrap();
        ledger.end(1, change, Outcome::Unknown);
        assert!(ledger.begin(1, false).is_none());
    }
}
