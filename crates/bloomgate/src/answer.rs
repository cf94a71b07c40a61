//! What the guard says about a key.

use std::fmt;
use std::sync::Arc;

/// The gate's word on a key. Only [`Verdict::Absent`] refuses.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Proven: no row with this key was committed through the guard.
    Absent,
    /// The filter can't rule the key out.
    Maybe,
    /// The gate can prove nothing now, so it passes everything.
    Unknown(OpenReason),
}

/// OpenReason a gate that can't prove absence is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenReason {
    /// No generation has been filled completely since this process started.
    Warming,
    /// The generation in service was invalidated and its successor isn't complete yet.
    Rebuilding,
    /// The configuration keeps the gate open.
    Forced,
    /// It isn't known yet whether another instance writes to the same namespace.
    Joining,
    /// Another instance uses the same namespace without a backplane, so ids may exist that this
    /// instance was never told of.
    NotAlone,
}

impl OpenReason {
    /// One word for status documents and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OpenReason::Warming => "warming",
            OpenReason::Rebuilding => "rebuilding",
            OpenReason::Forced => "forced",
            OpenReason::Joining => "joining",
            OpenReason::NotAlone => "not_alone",
        }
    }
}

impl fmt::Display for OpenReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OpenReason::Warming => "the first warm-up has not completed",
            OpenReason::Rebuilding => "the gate is being rebuilt",
            OpenReason::Forced => "the configuration keeps the gate open",
            OpenReason::Joining => "it is not known yet whether another instance is live",
            OpenReason::NotAlone => {
                "another instance is live in the same namespace, without a backplane"
            }
        })
    }
}

/// Which room answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        /// Who had it.
        tier: Tier,
        /// True if its time to live was over and the database couldn't be asked.
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
