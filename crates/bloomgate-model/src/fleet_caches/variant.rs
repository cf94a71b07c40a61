//! The rules on a fleet's caches that can be left out, one at a time.

/// What is searched: the rules, or the rules with one left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// The rules as they are.
    #[default]
    Correct,
    /// A6: a member that applies an entry after its deadline forgets it.
    LateEntryIgnored,
    /// C17: a new connection is used whatever the identity of the server that it leads to.
    ConnectionUnchecked,
    /// C19: Begin waits for no member.
    BeginWithoutBarrier,
    /// C20: the local cache serves without a lease.
    LocalServedWithoutLease,
    /// C20: without a lease, callers join a flight whose query has started.
    FlightJoinedWithoutLease,
    /// C22: a member uses the caches before it has applied the log up to the tail that it read.
    JoinerWithoutReplay,
    /// C24: the local cache stays when the identity changes.
    LocalKeptAtChange,
    /// C24: the generations stay when the identity changes.
    GenerationsKeptAtChange,
    /// C25: a Begin does not wait for leases of the old identity.
    UnsettledNotWaited,
    /// C26: the open set is emptied when the identity changes.
    OpenSetForgotten,
    /// C26: a member that was caught up counts as knowing all, whatever became of its lease.
    KnowsAllIfCaughtUp,
    /// C26: a process that does not know all open writes caches nevertheless.
    UnawareMemberCaches,
    /// C26: a flight that began before its member knew all open writes is joined, and publishes, once
    /// it does.
    UnawareFlightUsed,
    /// C26: the shared cache is used without a lease.
    SharedUsedWithoutLease,
    /// C26: the prefix of slots lacks the epoch.
    PrefixWithoutEpoch,
    /// C26: an End that finds another identity returns at once.
    EndWithoutBarrier,
    /// C26: open writes are not announced to the log of the new identity, which counts as complete.
    NothingAnnounced,
}
