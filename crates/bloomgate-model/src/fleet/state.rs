//! A state of the fleet, and its steps.

/// One state of Redis, the members and the writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) redis: Redis,
    pub(super) members: Vec<Member>,
    pub(super) writes: Vec<Write>,
    pub(super) crashes: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Redis {
    /// Stands for the identity.
    pub(super) epoch: u8,
    pub(super) settled: bool,
    /// The log holds every open write: the identity is older than W, or a member that knows them all
    /// has announced them.
    pub(super) complete: bool,
    pub(super) rows: Vec<Row>,
    /// The writes whose Begin is in the log, trimmed ones aside.
    pub(super) log: Vec<u8>,
    pub(super) trimmed: u8,
}

impl Redis {
    /// The position of the last entry; the first has 1.
    pub(super) fn tail(&self) -> u8 {
        self.trimmed + self.log.len() as u8
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub(super) member: usize,
    pub(super) life: u8,
    pub(super) applied: u8,
    pub(super) fenced: bool,
    /// The write that fenced it, for the variant that tells.
    pub(super) fenced_by: u8,
}

impl Row {
    /// This incarnation, as a bit.
    pub(super) fn bit(&self) -> u16 {
        1 << (self.member * 4 + usize::from(self.life))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Life {
    /// A new process, or one whose row is fenced or gone.
    Unregistered,
    Registered,
    /// Stopped refusing; its row still stands. (In the variant, the other way round.)
    Leaving,
    Left,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    /// The number of its latest registration.
    pub(super) life: u8,
    /// It has not registered yet: an older row is not its own.
    pub(super) new_process: bool,
    pub(super) stage: Life,
    /// The identity under which it registered.
    pub(super) epoch: u8,
    /// How far it has applied that identity's log.
    pub(super) applied: u8,
    /// The ids that its filter holds.
    pub(super) gate: u8,
    /// The tail that it read when it joined.
    pub(super) target: Option<u8>,
    pub(super) scanned: bool,
    /// The writes that have to be over before it scans: those that W after the registration covers.
    pub(super) pending: u8,
    /// Its lease of the old identity was valid when it registered under this one.
    pub(super) knows_all: bool,
    /// The waits that started since the renewal behind the lease was sent, a bit each.
    pub(super) lease: Option<u8>,
    /// Only for the variant that checks its lease before it sends the registration.
    pub(super) checked: bool,
    /// Only for the variant in which a task clears it.
    pub(super) believes_leased: bool,
    pub(super) renewal: Option<Renewal>,
    /// It waits for L before it sets the settled flag.
    pub(super) settling: bool,
}

impl Member {
    pub(super) fn in_sync(&self) -> bool {
        self.scanned && self.target.is_some_and(|target| self.applied >= target)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Renewal {
    pub(super) stage: RenewalStage,
    pub(super) position: u8,
    /// The waits that started since it was sent, a bit each.
    pub(super) waits: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum RenewalStage {
    Sent,
    Granted,
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Idle,
    Entered,
    Appended,
    /// Of the variant that looks before it waits.
    LookedTooEarly,
    /// Begin has returned, or is about to; the statement may be under way.
    Begun,
    Committed,
    Failed,
}

impl Phase {
    /// Begun and not over: what W ends.
    pub(super) fn is_open(self) -> bool {
        !matches!(self, Self::Idle | Self::Committed | Self::Failed)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wait {
    None,
    Running,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Write {
    pub(super) phase: Phase,
    /// The identity under which its entry was appended, and the entry's position.
    pub(super) epoch: u8,
    pub(super) position: u8,
    /// Its latest wait of L, and the fenced incarnations that it found when that began.
    pub(super) wait: Wait,
    pub(super) covered: u16,
}

/// The steps; the number is the write's or the member's, a second one the row's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Begin of a write: the open set and the gate of its own member.
    EnterOpenSet(usize),
    /// Its entry in the log.
    Append(usize),
    /// It fences a member that has not applied the entry.
    Fence(usize, usize),
    /// It starts to wait for L.
    WaitLease(usize),
    /// L has passed.
    LeaseWaited(usize),
    /// It looks at table and identity, after all waiting. With every row applied
    /// (`AwaitApplied` is that this is not yet so) Begin can return.
    LastLook(usize),
    /// It gives up, or W has passed.
    BeginFails(usize),
    /// The row is committed.
    Commit(usize),
    /// The statement fails.
    Abort(usize),
    /// Someone removes a fenced row.
    RemoveFenced(usize, usize),
    /// Of a variant: Redis's clock removes a row.
    RowExpires(usize),
    /// Redis fails over or restarts, with so many entries of the log.
    ChangeIdentity(usize),
    /// The oldest entry leaves the log.
    Trim,
    /// A member registers: a new process, or one whose row is fenced or gone.
    Register(usize),
    /// A member registers under a new identity.
    Resync(usize),
    /// It reads the log's tail.
    ReadTail(usize),
    /// A member in sync applies the next entry.
    Apply(usize),
    /// One that joins does.
    Replay(usize),
    /// It scans the table.
    CopyGate(usize),
    /// A renewal leaves the member.
    SendRenewal(usize),
    /// Redis executes it.
    ExecuteRenewal(usize),
    /// The member has the answer.
    ReceiveRenewal(usize),
    /// Of a variant: a member finds its lease valid and decides to keep its gate.
    CheckLease(usize),
    /// A lease is over.
    LeaseLapses(usize),
    /// Of a variant: a task notices that the lease is over.
    LeaseTask(usize),
    /// A member starts to wait for L under an unsettled identity.
    Settle(usize),
    /// L has passed, and the member sets the flag.
    Settled(usize),
    /// A member that knows all open writes appends them.
    Announce(usize),
    /// A member stops refusing; then it removes its row.
    Leave(usize),
    /// A process is killed, and another starts in its place.
    Crash(usize),
}
