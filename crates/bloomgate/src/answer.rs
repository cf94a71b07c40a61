//! Verdicts and answers about a key.

use std::fmt;
use std::sync::Arc;

/// The gate's word on a key. Only [`Verdict::Absent`] refuses.
#[must_use]
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Proven: no row with this key was committed through the guard.
    Absent,
    /// The filter can't rule the key out.
    Maybe,
    /// The gate can prove nothing now, so it passes everything.
    Unknown(OpenReason),
}

/// The reason for which a gate is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenReason {
    /// No generation has been filled completely since this process started.
    Warming,
    /// The generation in service was voided and its successor isn't complete yet.
    Rebuilding,
    /// The configuration keeps the gate open.
    Forced,
    /// The guard is shutting down.
    ShuttingDown,
    /// It isn't known yet what other instances write to the same namespace.
    Joining,
    /// The link to the other instances is lost, or behind.
    LinkLost,
    /// The link's lease has ended and was not renewed in time.
    LeaseEnded,
    /// What the other instances write may have been missed; it is being learned anew.
    Resyncing,
    /// The log that connects the instances has records of a build that this one doesn't know.
    UnknownRecords,
}

impl OpenReason {
    /// One word for status documents and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OpenReason::Warming => "warming",
            OpenReason::Rebuilding => "rebuilding",
            OpenReason::Forced => "forced",
            OpenReason::ShuttingDown => "shutting_down",
            OpenReason::Joining => "joining",
            OpenReason::LinkLost => "link_lost",
            OpenReason::LeaseEnded => "lease_ended",
            OpenReason::Resyncing => "resyncing",
            OpenReason::UnknownRecords => "unknown_records",
        }
    }

    /// True if the caches may go on serving values and sentinels as fresh: the reason says nothing
    /// about what other instances write. A reason that isn't listed here is not harmless.
    pub(crate) fn spares_caches(self) -> bool {
        matches!(
            self,
            OpenReason::Warming
                | OpenReason::Rebuilding
                | OpenReason::Forced
                | OpenReason::ShuttingDown
        )
    }
}

impl fmt::Display for OpenReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OpenReason::Warming => "the first warm-up has not completed",
            OpenReason::Rebuilding => "the gate is being rebuilt",
            OpenReason::Forced => "the configuration keeps the gate open",
            OpenReason::ShuttingDown => "the guard is shutting down",
            OpenReason::Joining => "it is not known yet what other instances write",
            OpenReason::LinkLost => "the link to the other instances is lost or behind",
            OpenReason::LeaseEnded => "the lease of the link to the other instances has ended",
            OpenReason::Resyncing => "what the other instances write is being learned anew",
            OpenReason::UnknownRecords => {
                "the log of the instances has records that this build doesn't know"
            }
        })
    }
}

/// The module that answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tier {
    /// The gate refused; no cache and no database was asked.
    Gate,
    /// This process's cache.
    Local,
    /// The cache that all processes share.
    Shared,
    /// The database.
    Loader,
}

/// The guard's answer for a key.
#[must_use]
#[derive(Debug)]
pub enum Answer<V> {
    /// The row exists.
    Found {
        /// The row, shared with the local cache.
        value: Arc<V>,
        /// The module that had it.
        tier: Tier,
        /// True if its time to live was over and the database didn't answer.
        stale: bool,
    },
    /// No such row.
    Absent(Tier),
}

impl<V> Answer<V> {
    /// The row, if there is one.
    pub fn value(self) -> Option<Arc<V>> {
        match self {
            Answer::Found { value, .. } => Some(value),
            Answer::Absent(_) => None,
        }
    }
}

impl<V> Clone for Answer<V> {
    fn clone(&self) -> Self {
        match self {
            Answer::Found { value, tier, stale } => {
                Answer::Found { value: Arc::clone(value), tier: *tier, stale: *stale }
            }
            Answer::Absent(tier) => Answer::Absent(*tier),
        }
    }
}
