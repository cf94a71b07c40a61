//! The port to a fleet's log and table of members.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::{CopyChannel, InstanceId};
use crate::error::StoreError;

/// What a log and its table are: as long as it stays the same, nothing that was appended is lost
/// (rule C17).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LogIdentity {
    /// Drawn at random by whoever found no log, or one that doesn't fit its table.
    pub epoch: String,
    /// The server process.
    pub run: String,
    /// The server's replication history, which a failover changes.
    pub replication: String,
}

impl LogIdentity {
    /// An identity of these three parts.
    #[must_use]
    pub fn new(
        epoch: impl Into<String>,
        run: impl Into<String>,
        replication: impl Into<String>,
    ) -> Self {
        Self { epoch: epoch.into(), run: run.into(), replication: replication.into() }
    }

    /// The epoch in the names of the slots: another one for every identity, since a server that
    /// took over may have the slots as they were before the last writes.
    #[must_use]
    pub fn slot_epoch(&self) -> String {
        let Self { epoch, run, replication } = self;
        let all = format!("{epoch} {run} {replication}");
        format!("{:016x}", xxhash_rust::xxh3::xxh3_64(all.as_bytes()))
    }
}

/// A position in the log: that of an entry, or before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    /// The server's wall clock in milliseconds, never going back within a log. Says nothing about
    /// an entry's age (rule C23).
    pub millis: u64,
    /// Counts within a millisecond.
    pub sequence: u64,
}

impl LogPosition {
    /// Before every entry.
    pub const START: Self = Self { millis: 0, sequence: 0 };

    /// Reads the text that [`Display`](fmt::Display) writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (millis, sequence) = text.split_once('-')?;
        Some(Self { millis: millis.parse().ok()?, sequence: sequence.parse().ok()? })
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.millis, self.sequence)
    }
}

/// A member's row in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberRow {
    /// The process.
    pub instance: InstanceId,
    /// Counts the registrations of this process: a row that was removed and made again is another
    /// one.
    pub incarnation: u64,
    /// Everything up to here has been applied there.
    pub applied: LogPosition,
    /// How long its leases last.
    pub lease: Duration,
    /// Number of its renewals: a row whose number stands still is silent.
    pub renewals: u64,
    /// True once somebody has taken its leases away (rule C21).
    pub fenced: bool,
    /// What its user calls it; a label.
    pub label: String,
}

impl MemberRow {
    /// The row of a member that has just registered.
    #[must_use]
    pub fn new(registration: &Registration, applied: LogPosition) -> Self {
        Self {
            instance: registration.instance,
            incarnation: registration.incarnation,
            applied,
            lease: registration.lease,
            renewals: 0,
            fenced: false,
            label: registration.label.clone(),
        }
    }
}

/// The table and the ends of the log at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FleetView {
    /// Of log and table.
    pub identity: LogIdentity,
    /// True once somebody has waited out every lease of an earlier identity (rule C25).
    pub settled: bool,
    /// True once every write that was open under an earlier identity is in the log, or over (rule
    /// C26).
    pub open_set_known: bool,
    /// The last entry. A log is never empty.
    pub last: LogPosition,
    /// The last entry that was trimmed away; [`LogPosition::START`] before the first trim.
    pub trimmed: LogPosition,
    /// Number of entries in the log.
    pub length: u64,
    /// All rows, fenced ones included.
    pub members: Vec<MemberRow>,
}

impl FleetView {
    /// A fresh log under this identity, with one entry and without members.
    #[must_use]
    pub fn new(identity: LogIdentity, last: LogPosition) -> Self {
        Self {
            identity,
            settled: false,
            open_set_known: false,
            last,
            trimmed: LogPosition::START,
            length: 1,
            members: Vec::new(),
        }
    }

    /// The row of this instance.
    #[must_use]
    pub fn row(&self, instance: InstanceId) -> Option<&MemberRow> {
        self.members.iter().find(|row| row.instance == instance)
    }
}

/// What a process says of itself when it registers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Registration {
    /// The process.
    pub instance: InstanceId,
    /// Greater than at every earlier registration of the process.
    pub incarnation: u64,
    /// How long its leases last.
    pub lease: Duration,
    /// What its user calls it; at most 128 bytes.
    pub label: String,
    /// What it has applied, and under which identity: its position counts under no other.
    pub applied: Option<(LogIdentity, LogPosition)>,
}

impl Registration {
    /// The first registration of a process that has applied nothing.
    #[must_use]
    pub fn new(instance: InstanceId, lease: Duration, label: impl Into<String>) -> Self {
        Self { instance, incarnation: 1, lease, label: label.into(), applied: None }
    }
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogEntry {
    /// Where it stands.
    pub position: LogPosition,
    /// Who appended it.
    pub appender: InstanceId,
    /// What was appended.
    pub record: Bytes,
}

impl LogEntry {
    /// An entry.
    #[must_use]
    pub fn new(position: LogPosition, appender: InstanceId, record: Bytes) -> Self {
        Self { position, appender, record }
    }
}

/// What came of a step that holds under one identity only.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// It took effect; the view is that after it.
    Done(FleetView),
    /// The log and the table are others now, or the row isn't the caller's any more (removed,
    /// fenced, another incarnation): nothing was changed.
    Void(FleetView),
}

/// A flag of the table that is set once under an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogFlag {
    /// [`FleetView::settled`].
    Settled,
    /// [`FleetView::open_set_known`].
    OpenSetKnown,
}

/// The log and the table of members of one namespace, which every process can reach: the steps of
/// section C of the protocol that the server takes. Each is atomic, never repeated by itself, and
/// may have taken effect although its answer is lost.
///
/// Every step but [`look`](Self::look) and [`declare_single`](Self::declare_single) first makes a fresh log and table, under a new epoch, if
/// either is missing, or if the table's last entry isn't the log's.
pub trait FleetLog: Send + Sync + fmt::Debug + 'static {
    /// The server's `host:port`, or the path of its socket, for logs. Holds no password.
    fn endpoint(&self) -> String;

    /// Takes note that the slots of this identity are in use: only the server process that it names
    /// may answer for them from here on.
    fn name_server(&self, _identity: &LogIdentity) {}

    /// Checks that the server can keep a log. Called at the start.
    ///
    /// # Errors
    /// [`Unsupported`](crate::StoreErrorKind::Unsupported) if it may lose one by its settings, with
    /// the setting and the fix.
    fn prepare(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Puts the row of a process into the table, in place of an earlier one of the same process.
    /// It has applied what `registration` says if the identity is that one, and nothing otherwise.
    fn register<'a>(
        &'a self,
        registration: &'a Registration,
    ) -> BoxFuture<'a, Result<FleetView, StoreError>>;

    /// Appends one entry and returns its position. Under whichever identity there is: the caller
    /// compares that of the view.
    fn append<'a>(
        &'a self,
        appender: InstanceId,
        record: Bytes,
    ) -> BoxFuture<'a, Result<(LogPosition, FleetView), StoreError>>;

    /// Reads the table. Makes none: `None` if there is no log, or no table, or they don't fit.
    fn look(&self) -> BoxFuture<'_, Result<Option<FleetView>, StoreError>>;

    /// Renews a lease (rule C20) and says what has been applied. Void unless the row stands, with
    /// this incarnation, and isn't fenced.
    fn renew<'a>(
        &'a self,
        identity: &'a LogIdentity,
        instance: InstanceId,
        incarnation: u64,
        applied: LogPosition,
    ) -> BoxFuture<'a, Result<Step, StoreError>>;

    /// Takes away a member's leases: it is refused any further one (rule C21). Void unless the row
    /// stands, with this incarnation.
    fn fence<'a>(
        &'a self,
        identity: &'a LogIdentity,
        instance: InstanceId,
        incarnation: u64,
    ) -> BoxFuture<'a, Result<Step, StoreError>>;

    /// Removes a row: a fenced one, by someone who has waited, or the caller's own. Void unless the
    /// row stands, with this incarnation.
    fn remove<'a>(
        &'a self,
        identity: &'a LogIdentity,
        instance: InstanceId,
        incarnation: u64,
    ) -> BoxFuture<'a, Result<Step, StoreError>>;

    /// Sets a flag of the table.
    fn set_flag<'a>(
        &'a self,
        identity: &'a LogIdentity,
        flag: LogFlag,
    ) -> BoxFuture<'a, Result<Step, StoreError>>;

    /// Trims entries up to `seen`, as far as every row has applied them, but never the last one
    /// (rule C23). If more than `cap` entries are left, trims the oldest whoever hasn't applied
    /// them, and takes [`FleetView::open_set_known`] back.
    fn trim<'a>(
        &'a self,
        identity: &'a LogIdentity,
        seen: LogPosition,
        cap: u64,
    ) -> BoxFuture<'a, Result<Step, StoreError>>;

    /// Ends log and table, for a guard that is declared to be the only instance, and returns the
    /// epoch of that guard's slots: the same until a member registers.
    fn declare_single(&self) -> BoxFuture<'_, Result<String, StoreError>>;

    /// Opens a channel for copies of a gate, with a connection of its own where there is one.
    fn open_copies(&self) -> BoxFuture<'_, Result<Box<dyn CopyChannel>, StoreError>>;

    /// Opens a reader, with a connection of its own where there is one.
    fn follow(&self) -> BoxFuture<'_, Result<Box<dyn LogReader>, StoreError>>;
}

/// Reads a log's entries as they are appended.
pub trait LogReader: Send + fmt::Debug {
    /// The server process that it reads from, as [`LogIdentity::run`] names it. What it reads
    /// belongs to that process's log only.
    fn run(&self) -> &str;

    /// The entries after `after`, oldest first, at most a thousand; waits up to `wait` for the
    /// first. Empty if none came. After an error the reader is of no use any more.
    fn next(
        &mut self,
        after: LogPosition,
        wait: Duration,
    ) -> BoxFuture<'_, Result<Vec<LogEntry>, StoreError>>;
}
