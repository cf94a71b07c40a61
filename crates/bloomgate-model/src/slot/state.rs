//! The rules that can be left out, a state of the key, and its steps.

/// What is searched: the rules, or the rules with one left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// The rules as they are.
    #[default]
    Correct,
    /// A3: the generation of the key moves at Begin only.
    GenerationMovedAtBeginOnly,
    /// A3: it moves at End only.
    GenerationMovedAtEndOnly,
    /// A3: a copy of a shared hit is published whatever the generation.
    HitCopiedUnchecked,
    /// A4: any started flight is joined.
    AnyFlightJoined,
    /// A4: readers use the caches while the key is open.
    CachesUsedWhileOpen,
    /// A4: a flight decides when it is created whether it skips the caches, and not when it starts.
    SkipDecidedAtCreation,
    /// A5: the local cache first, then the shared one.
    LocalEndFirst,
    /// A5: End comes before the commit.
    EndBeforeCommit,
    /// A5: an End that the shared cache does not confirm is over.
    EndDropped,
    /// A6: a write of unknown outcome ends at W without what End would have done.
    WindowEndsSilently,
    /// A8: a process that starts caches at once, while a statement of its predecessor may be under way.
    RestartCachesAtOnce,
    /// A8: a flight that began while the process warmed up is joined after that.
    WarmUpFlightJoined,
    /// B10: the intent stands in the slot of the writer's schema only.
    IntentInOneSchema,
    /// B10: there is no intent.
    NoIntent,
    /// B11: a reader that saw an intent publishes locally.
    IntentReaderPublishes,
    /// B12: an error is stored as a null.
    ErrorIsNull,
    /// B12: a fill does not compare the lease.
    FillWithoutCompare,
    /// B13: a fill is sent whatever the open set and the generation say.
    FillUnchecked,
    /// B13: the open set holds the writes of this process only.
    OpenSetOfThisProcessOnly,
    /// B14: End removes the intents of others, too.
    EndRemovesAllIntents,
    /// B14: End leaves what it finds in place of its intent.
    EndLeavesOthersEntry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Entry {
    Empty,
    Value(u8),
    /// Of the flight with this index.
    Lease(u8),
    /// Of these writes, a bit each.
    Intent(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Idle,
    Entered,
    Committed,
    Aborted,
    /// The caller has its answer, the shared cache has not confirmed End.
    Unconfirmed,
    /// Ended here, but not yet in the log that the other member reads.
    Ended,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Write {
    pub(super) phase: Phase,
    /// The slots that hold its intent, and those that End has cleared.
    pub(super) intents: u8,
    pub(super) cleared: u8,
    /// Whether the other member has applied its Begin.
    pub(super) applied: bool,
    /// What it committed; 0 if nothing.
    pub(super) version: u8,
    pub(super) abandoned: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    Idle,
    /// It has asked nothing yet.
    Created,
    /// Its question to the shared cache is on its way.
    Started,
    Hit(u8),
    Leased,
    Unleased,
    /// What the query found, and whether the lease is still its own to use.
    Loaded(u8, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flight {
    pub(super) stage: Stage,
    /// The floor when its latest caller joined.
    pub(super) floor: u8,
    /// Whether the generation of the key is still that of its start.
    pub(super) current: bool,
    /// It publishes nothing: the key was open, or its slot held an intent.
    pub(super) bypass: bool,
    /// A fill on its way to the shared cache.
    pub(super) fill: Option<u8>,
}

impl Flight {
    pub(super) const IDLE: Self =
        Self { stage: Stage::Idle, floor: 0, current: false, bypass: false, fill: None };
}

/// One state of the key. A version of the row is a number; 0 is its absence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) row: u8,
    /// The highest version whose write has ended.
    pub(super) floor: u8,
    pub(super) slots: [Entry; 2],
    pub(super) writes: [Write; 2],
    pub(super) flights: [Flight; 3],
    /// The open set of each member.
    pub(super) open: [u8; 2],
    pub(super) local: [Option<u8>; 2],
    /// After a write that ended at W: the slot is not used until it has been cleared.
    pub(super) cleansing: [bool; 2],
    /// The first member's process was killed, and its successor doesn't cache yet (rule A8).
    pub(super) restarted: bool,
    pub(super) warming: bool,
}

/// The steps; the number is the write's, the flight's, the member's or the slot's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Begin of a write: the open set of its own member.
    EnterOpenSet(usize),
    /// The intent of a write in a slot.
    PutIntent(usize, usize),
    /// The other member applies the Begin, or the End, of a write.
    Apply(usize),
    /// The row changes.
    Commit(usize),
    /// The statement fails.
    Abort(usize),
    /// The outcome will not be known.
    LoseOutcome(usize),
    /// End of a write, in a slot.
    ClearIntent(usize, usize),
    /// The shared cache does not answer, and the caller gets its answer.
    AnswerUnconfirmed(usize),
    /// End of a write in the local cache; the write returns.
    EndLocally(usize),
    /// W has passed for a write that has not ended.
    WindowEnds(usize),
    /// A member clears the slots of a write that ended at W.
    ClearAtDeadline(usize),
    /// A reader leads a flight.
    CreateFlight(usize),
    /// The flight starts: it asks the shared cache, or skips the caches.
    StartFlight(usize),
    /// A reader joins one.
    JoinFlight(usize),
    /// The flight asks the shared cache for the value or a lease.
    AskSlot(usize),
    /// The shared cache does not answer it.
    AskFails(usize),
    /// The query reads the row.
    Load(usize),
    /// The query fails.
    LoadFails(usize),
    /// The flight stores what it has in the local cache.
    PublishLocally(usize),
    /// It sends its fill, having looked at the open set and the generation.
    SendFill(usize),
    /// The shared cache compares and sets.
    ExecuteFill(usize),
    /// The flight ends and gives its lease back.
    Finish(usize),
    /// The process of the first member is killed, and another starts, without a log.
    Crash,
    /// No statement of its predecessor is under way any more.
    WarmUpEnds,
    /// A slot is lost: expiry, eviction, a server that restarts empty.
    LoseSlot(usize),
}
