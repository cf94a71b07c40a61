//! A state of the two primaries, and its steps.

/// One state of the three nodes, the member and the write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) promoted: bool,
    /// The node that node 2 follows.
    pub(super) follows: usize,
    /// Node 0 follows node 1.
    pub(super) demoted: bool,
    pub(super) identities: [Identity; 2],
    pub(super) member: Member,
    pub(super) phase: Phase,
    /// The identity under which the write's entry was appended last.
    pub(super) at: usize,
    /// A majority has acknowledged the entry.
    pub(super) appended: bool,
    pub(super) wait: Wait,
    /// The wait began after the member's row was fenced there.
    pub(super) covers_fence: bool,
    /// A process waits for L before it marks the new identity as settled.
    pub(super) settling: bool,
}

impl State {
    /// Whether the primary of an identity answers.
    pub(super) fn answers(&self, identity: usize) -> bool {
        if identity == 0 { !self.demoted } else { self.promoted }
    }

    /// Whether a majority acknowledges by now what that primary has executed.
    pub(super) fn acknowledges(&self, identity: usize) -> bool {
        if identity == 0 {
            !self.demoted && (!self.promoted || self.follows == 0)
        } else {
            self.promoted && (self.follows == 1 || self.demoted)
        }
    }
}

/// What the primary of an identity holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    pub(super) row: Option<Row>,
    /// The write's entry is in the log.
    pub(super) log: bool,
    pub(super) settled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub(super) applied: bool,
    pub(super) fenced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pub(super) identity: usize,
    /// The filter holds the id.
    pub(super) gate: bool,
    /// It has joined, or kept its gate.
    pub(super) synced: bool,
    pub(super) applied: bool,
    /// The waits that started since the renewal behind the lease was sent, a bit each.
    pub(super) lease: Option<u8>,
    pub(super) renewal: Option<Renewal>,
    /// Its registration is executed, and not acknowledged.
    pub(super) registering: bool,
    /// The write has to be over before it scans.
    pub(super) pending: bool,
}

impl Member {
    pub(super) fn refuses(&self) -> bool {
        self.lease.is_some() && self.synced && !self.gate
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Renewal {
    pub(super) stage: RenewalStage,
    pub(super) applied: bool,
    /// The waits that started since it was sent, a bit each.
    pub(super) waits: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum RenewalStage {
    Sent,
    Executed,
    Acknowledged,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Idle,
    Entered,
    Appended,
    /// The last look is executed, and not acknowledged.
    Looked,
    Begun,
    Committed,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wait {
    None,
    Running,
    Over,
}

/// The steps; a number is an identity's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Node 1 becomes a primary.
    Promote,
    /// Node 0 follows node 1.
    Demote,
    /// Node 2 follows node 1.
    Follow,
    /// Begin: the open set of the writer.
    EnterOpenSet,
    /// Its entry in the log of that primary.
    Append(usize),
    /// A majority acknowledges the entry.
    AppendAcknowledged,
    /// Begin fences the member.
    Fence,
    /// It starts to wait for L.
    WaitLease,
    /// L has passed.
    LeaseWaited,
    /// Its last look.
    LastLook,
    /// A majority acknowledges the last look, and Begin returns.
    LastLookAcknowledged,
    /// It gives up what it began there, and appends anew.
    BeginAnew,
    /// It gives up.
    BeginFails,
    /// The row is committed.
    Commit,
    /// The statement fails.
    Abort,
    /// A process starts to wait for L under the new identity.
    Settle,
    /// L has passed, and the flag is set.
    Settled,
    /// The member registers under the new identity, or anew after it was fenced.
    Register(usize),
    /// A majority acknowledges the registration.
    RegistrationAcknowledged,
    /// It applies the entry.
    Apply,
    /// It scans the table.
    CopyGate,
    /// A renewal leaves the member.
    SendRenewal,
    /// The primary executes it.
    ExecuteRenewal,
    /// A majority acknowledges it.
    RenewalAcknowledged,
    /// The member has the answer.
    ReceiveRenewal,
    /// No answer comes.
    LoseRenewal,
    /// The lease is over.
    LeaseLapses,
}
