//! A state of the fleet's caches, and its steps.

/// One state of Redis, the row, two members and their readers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The version that is committed, and the highest whose write has ended.
    pub(super) row: u8,
    pub(super) floor: u8,
    pub(super) redis: Redis,
    pub(super) members: [Member; 2],
    pub(super) writes: Vec<Write>,
    pub(super) flights: Vec<Flight>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Redis {
    /// Stands for the identity.
    pub(super) epoch: u8,
    /// Whether the log holds every open write.
    pub(super) complete: bool,
    pub(super) rows: [Option<Row>; 2],
    pub(super) log: Vec<Entry>,
    /// The key's slot under the prefix of each epoch.
    pub(super) slots: [Slot; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub(super) applied: u8,
    pub(super) fenced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Entry {
    Begin(u8),
    End(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    Empty,
    Value(u8),
    /// Of this flight.
    Lease(u8),
    /// Of these writes, a bit each.
    Intent(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pub(super) registrations: u8,
    pub(super) registered: bool,
    /// The identity under which it registered last, whose epoch is in the prefix that it uses.
    pub(super) epoch: u8,
    pub(super) applied: u8,
    /// The tail that it has to apply before it is in sync; none in a new process.
    pub(super) target: Option<u8>,
    /// The writes whose W has to pass, unless they are announced.
    pub(super) pending: u8,
    /// Its lease was valid when it registered, or it is of the first identity.
    pub(super) may_announce: bool,
    /// The identity that granted its lease.
    pub(super) lease: Option<u8>,
    pub(super) open: u8,
    pub(super) local: Option<u8>,
    /// A write ended at W: the slot is not used until it has been cleared.
    pub(super) cleansing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Idle,
    Entered,
    Appended,
    Intended,
    /// Begin has returned, or is about to.
    Begun,
    Committed,
    Aborted,
    /// End has cleared the slot.
    Cleared,
    /// End has found another identity, and repeats the barrier.
    Repeating,
    EndAppended,
    /// The caller has its answer; End is not in the log yet.
    Returned,
    Over,
}

impl Phase {
    /// Begun, and neither ended nor ended by W.
    pub(super) fn is_open(self) -> bool {
        !matches!(self, Self::Idle | Self::Returned | Self::Over)
    }

    /// Its SQL is over, and it has not ended.
    pub(super) fn may_expire(self) -> bool {
        matches!(
            self,
            Self::Committed | Self::Aborted | Self::Cleared | Self::Repeating | Self::EndAppended
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Write {
    pub(super) phase: Phase,
    /// The identity and position of its latest entry in the log.
    pub(super) epoch: u8,
    pub(super) position: u8,
    pub(super) version: u8,
    /// W has passed.
    pub(super) expired: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    Idle,
    Started,
    Hit(u8),
    Leased,
    Unleased,
    Loaded(u8, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flight {
    pub(super) stage: Stage,
    /// The floor when its latest caller joined.
    pub(super) floor: u8,
    pub(super) current: bool,
    /// It publishes nothing.
    pub(super) bypass: bool,
    /// A fill on its way, with the epoch of its prefix.
    pub(super) fill: Option<(u8, u8)>,
}

/// What a slot holds after a change of identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// What it held.
    Kept,
    /// Nothing: the server restarted empty.
    Lost,
    /// The oldest version of the row: the replica lagged behind.
    Restored,
}

/// The steps; the number is the write's, the flight's or the member's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Begin of a write: its member's open set.
    EnterOpenSet(usize),
    /// Its entry in the log.
    Append(usize),
    /// Its intent in the slot.
    PutIntent(usize),
    /// The last look at table and identity, of Begin or of an End that repeats the barrier.
    LastLook(usize),
    /// The row changes.
    Commit(usize),
    /// The statement fails.
    Abort(usize),
    /// End in the slot.
    ClearIntent(usize),
    /// End in the local cache of the write's member.
    EndLocally(usize),
    /// End in the log.
    AppendEnd(usize),
    /// W has passed for a write.
    WindowEnds(usize),
    /// A Begin fences a member. Its wait of L is over once the member has no lease.
    Fence(usize),
    /// Redis fails over or restarts; table and log are gone.
    ChangeIdentity(After),
    /// The slot of an epoch expires, or is evicted.
    LoseSlot(usize),
    /// A renewal, sent, executed and received; the model of the gates splits it.
    Renew(usize),
    /// A lease is over.
    LeaseLapses(usize),
    /// A member registers and reads the log's tail: a new process, or one whose row is fenced.
    Register(usize),
    /// It does so under a new identity.
    Resync(usize),
    /// It reads the tail again, since open writes were announced.
    ReadTail(usize),
    /// It applies the next entry.
    Apply(usize),
    /// A member that knows all open writes appends them.
    Announce(usize),
    /// A process is killed, and another starts in its place.
    Crash(usize),
    /// A member clears the slot of a write that ended at W.
    ClearAtDeadline(usize),
    /// A reader leads a flight.
    StartFlight(usize),
    /// A reader joins one.
    JoinFlight(usize),
    /// The flight asks the shared cache.
    AskSlot(usize),
    /// The query reads the row.
    Load(usize),
    /// The flight stores what it has in the local cache.
    PublishLocally(usize),
    /// It sends its fill.
    SendFill(usize),
    /// Redis compares and sets.
    ExecuteFill(usize),
    /// The flight ends.
    Finish(usize),
}
