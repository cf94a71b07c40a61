//! The rules that can be left out, a state of the gate, and its steps.

/// What is searched: the rules, or the rules with one left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// The rules as they are.
    #[default]
    Correct,
    /// A1: the key is inserted into the generations before it enters the open set.
    InsertBeforeEntering,
    /// A1: the open set is keyed by key alone, so that a failed write removes another's entry.
    OpenSetByKeyAlone,
    /// A2: a rebuild does not copy the open set.
    NoCopyOfOpenSet,
    /// A2: a rebuild copies the open set before it subscribes to admissions.
    CopyBeforeSubscribe,
    /// A2: a scan that was cut off counts as a scan.
    CutScanSucceeds,
    /// A5: End comes before the statement is committed.
    EndBeforeCommit,
    /// A6: a write of unknown outcome leaves the open set with its caller.
    EntryEndsWithCaller,
    /// A8: the first scan after a restart waits for nothing.
    RestartScansAtOnce,
    /// A8: it waits for statements that have a transaction id; one that has not written has none.
    RestartWaitsForTransactionIds,
    /// A8: it lists the statements while one may still be in a socket.
    RestartListsAtOnce,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Phase {
    Idle,
    Entered,
    /// The generations that were found, a bit each.
    Noted(u8),
    /// Begin has returned.
    Begun,
    InSocket,
    /// Under way in the database, without a transaction id.
    Waiting,
    /// Under way, with one.
    Writing,
    Committed,
    Aborted,
    Ended,
}

impl Phase {
    pub(super) fn under_way(self) -> bool {
        matches!(self, Self::InSocket | Self::Waiting | Self::Writing)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Write {
    pub(super) phase: Phase,
    pub(super) committed: bool,
    /// No process awaits the outcome any more: time-out, panic, or the process was killed.
    pub(super) abandoned: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Rebuild {
    None,
    /// Of the variant that copies first: whether the copy has the key.
    CopiedEarly(bool),
    Subscribed,
    Copied,
    Scanned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Restart {
    JustStarted,
    SocketsDrained,
    /// Waits for these writes, a bit each.
    Listed(u8),
    Over,
}

/// One state of the gate, its writes and the database.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) writes: [Write; 3],
    pub(super) open: u8,
    /// The generation that answers; none while warming.
    pub(super) current: Option<u8>,
    pub(super) rebuild: Rebuild,
    /// Numbers given to generations so far; the one being built has the last.
    pub(super) generations: u8,
    /// The generations that hold the key.
    pub(super) contains: u8,
    pub(super) restart: Restart,
    pub(super) crashes: u8,
}

impl State {
    pub(super) fn committed(&self) -> bool {
        self.writes.iter().any(|write| write.committed)
    }

    pub(super) fn building(&self) -> Option<u8> {
        matches!(self.rebuild, Rebuild::Subscribed | Rebuild::Copied | Rebuild::Scanned)
            .then(|| self.generations - 1)
    }

    pub(super) fn refuses(&self) -> bool {
        self.current.is_some_and(|generation| self.contains & (1 << generation) == 0)
    }

    pub(super) fn all_over(&self, listed: u8) -> bool {
        (0..3).all(|i| listed & (1 << i) == 0 || !self.writes[i].phase.under_way())
    }
}

/// The steps of the gate; the number is the write's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Begin enters the open set.
    EnterOpenSet(usize),
    /// Begin reads which generations exist.
    NoteGenerations(usize),
    /// Begin inserts the key into them, and returns.
    Insert(usize),
    /// The statement is sent.
    SendSql(usize),
    /// The database reads it from its socket.
    StartSql(usize),
    /// It gets a transaction id.
    FirstWrite(usize),
    /// It commits.
    Commit(usize),
    /// It fails, or the database's time-out ends it.
    Abort(usize),
    /// The write ends, after a commit or a rollback.
    End(usize),
    /// The caller no longer awaits the statement.
    LoseOutcome(usize),
    /// W has passed for a write of unknown outcome.
    WindowEnds(usize),
    /// A rebuild subscribes to admissions.
    Subscribe,
    /// A rebuild copies the open set.
    CopyOpenSet,
    /// The scan reads the table to its explicit end.
    Scan,
    /// The scan is cut off before it reaches the row.
    CutScan,
    /// The new generation replaces the current one.
    Swap,
    /// The process is killed, and another starts.
    Crash,
    /// A second has passed since the start: sockets are drained.
    DrainSockets,
    /// The database lists what is running.
    ListStatements,
    /// All that was listed has ended, or W has passed since the start.
    RestartOver,
}
