//! Reasons for which a write did not begin, did not succeed or did not end.

use std::time::Duration;

use super::{BackplaneError, StoreError};

/// Why a key could not be admitted to the gate, so that its write must not commit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdmitError {
    /// The key doesn't exist, proven by the gate
    /// ([`begin_existing`](crate::Guard::begin_existing)).
    #[error("no row has this key")]
    Absent,
    /// The shared cache could not take the write intent that keeps stale entries out (rule B10).
    #[error("the shared cache refused the write intent")]
    Store(#[source] StoreError),
    /// The other instances could not be informed.
    #[error("the backplane refused the write")]
    Backplane(#[from] BackplaneError),
    /// As many writes are open as the guard allows.
    #[error("{open} writes are open, the limit")]
    TooManyOpen {
        /// The limit.
        open: usize,
    },
    /// The write's time is up.
    #[error("the write is over")]
    Closed,
    /// The guard is shutting down and takes no new writes.
    #[error("the guard is shutting down")]
    ShuttingDown,
}

/// Why a write through the guard did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError<E> {
    /// The key doesn't exist, proven by the gate; `run` was not started (`update`, `delete`).
    #[error("no row has this key")]
    Absent,
    /// Begin failed; `run` was not started. Try again shortly.
    #[error("the write could not begin")]
    Begin(#[source] AdmitError),
    /// `run` returned this error.
    #[error("the write failed")]
    Run(#[source] E),
    /// `run` did not end in time and was dropped; whether it took effect is unknown.
    #[error("the write did not end within {after:?}; whether it took effect is unknown")]
    TimedOut {
        /// How long it had.
        after: Duration,
    },
    /// `run` panicked; whether it took effect is unknown.
    #[error("the write panicked; whether it took effect is unknown")]
    Panicked,
    /// `run` of a [`create`](crate::Guard::create) returned the proof of another write, so an id
    /// may have been committed that no gate knows. The gate opens and is rebuilt.
    #[error("the proof of admission belongs to another write; the gate is rebuilt")]
    ForeignProof,
}

impl<E> WriteError<E> {
    /// True if the same write may well succeed in a moment.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Begin(_) | Self::TimedOut { .. })
    }
}

/// Why a write that its user ended was not over in time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndError {
    /// The write window had passed before End. What was committed after it may have met readers
    /// that cached the old row: invalidate the key, and give the transaction a shorter time-out.
    #[error(
        "the write ended {late:?} after its window; what is cached of its keys may be outdated"
    )]
    TooLate {
        /// By how much.
        late: Duration,
    },
}

/// Why not everything that is cached was invalidated. Try again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidateError {
    /// The shared cache failed, so it may hold outdated entries.
    #[error("the shared cache may hold outdated entries")]
    Store(#[source] StoreError),
    /// The other instances could not be informed.
    #[error("the other instances may hold outdated entries")]
    Backplane(#[from] BackplaneError),
}
