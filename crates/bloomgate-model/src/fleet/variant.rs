//! The rules of section C that can be left out, one at a time.

/// What is searched: the rules, or the rules with one left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// The rules as they are.
    #[default]
    Correct,
    /// C19: Begin waits for no row.
    BeginWithoutBarrier,
    /// C19: the last look does not compare the identity.
    IdentityUnchecked,
    /// C19: the last look comes before the waiting.
    LookBeforeWaiting,
    /// C20: a member refuses without a lease.
    NoLeaseCheck,
    /// C20: a task has to notice that the lease has lapsed.
    LeaseCheckedByTask,
    /// C20: the lease counts from the answer to the renewal.
    LeaseCountsFromAnswer,
    /// C20: a renewal acknowledges what was read and not applied.
    AcknowledgesWhatWasRead,
    /// C20: the renewal of a fenced row is granted.
    FencedRowRenewed,
    /// C21: a Begin that has fenced a member does not wait.
    FenceWithoutWaiting,
    /// C21: a Begin that finds a row fenced by another does not wait.
    OthersFenceNotWaited,
    /// C21: a fenced row is removed by one who has not waited.
    RemovedUnwaited,
    /// C21: whatever row the fenced member has by then is removed.
    OtherIncarnationRemoved,
    /// C21: Redis's clock ends the row of a silent member.
    ExpiryFromWallClock,
    /// C22: the log's tail is read before the member registers.
    TailBeforeRegister,
    /// C22: a joining member does not replay the log.
    JoinerWithoutReplay,
    /// C22: the gate is copied, and then the log is followed from its end.
    CopyBeforeSubscribe,
    /// C22: the scan comes before the registration; all that the log retains is replayed after it.
    ScanBeforeRegister,
    /// C22: the row goes before the member stops refusing.
    RowRemovedBeforeLeaving,
    /// C22: a Begin that finds no other member in the table takes it for proof that there is none.
    EmptinessIsProof,
    /// C23: an entry is trimmed before W.
    YoungEntryTrimmed,
    /// C23: an entry is trimmed that a member has not applied.
    UnappliedEntryTrimmed,
    /// C24: the scan after an identity change does not wait for W.
    ScanBeforeWindow,
    /// C24, C26: a member keeps its gate if it was caught up, whatever became of its lease.
    KeptIfCaughtUp,
    /// C24, C26: a member keeps its gate if its lease was valid when it sent its registration.
    LeaseCheckedBeforeRegistering,
    /// C25: a Begin does not wait for an unsettled identity.
    UnsettledNotWaited,
    /// C26: a process that joins trusts a log that is younger than W and was not announced anew.
    YoungLogTrusted,
}
