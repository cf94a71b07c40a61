//! What can go wrong, told without driver types.

use std::sync::Arc;
use std::time::Duration;

use crate::answer::OpenReason;

/// Any error of another library, kept as the source of ours.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// OpenReason the guard could not be built, or could not answer.
///
/// An answer that fails says nothing about whether the row exists: it is a 5xx, never a 404, and
/// nothing of it is remembered.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting that can't be right.
    #[error("{field}: {problem}; {fix}")]
    Config {
        /// The builder's method.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
        /// What would be right.
        fix: &'static str,
    },
    /// More loads are wanted than the database is to be asked at a time, and the queue's deadline
    /// passed. Try again shortly.
    #[error("the loader is at its limit: no permit within {waited:?}")]
    Shed {
        /// How long the request waited for a permit.
        waited: Duration,
    },
    /// The database did not answer in time.
    #[error("the load did not end within {after:?}")]
    LoadTimedOut {
        /// The load's budget.
        after: Duration,
    },
    /// The loader returned an error.
    #[error("the load failed")]
    Load(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The loader, or the decoding of a value, panicked.
    #[error("the load panicked")]
    LoadPanicked,
    /// A rebuild was given up because what it was to prove no longer holds.
    #[error("the rebuild was given up: {0}")]
    RebuildAbandoned(OpenReason),
    /// The gate's filter refused its parameters or its memory.
    #[error("the gate's filter could not be made")]
    Filter(#[source] Arc<bloomgate_filter::Error>),
    /// The shared cache refuses to work with this guard for good.
    #[error("the shared cache can't be used")]
    Store(#[source] Arc<StoreError>),
}

impl Error {
    pub(crate) fn config(
        field: &'static str,
        problem: impl Into<String>,
        fix: &'static str,
    ) -> Self {
        Self::Config { field, problem: problem.into(), fix }
    }

    pub(crate) fn load(source: impl Into<BoxError>) -> Self {
        Self::Load(Arc::from(source.into()))
    }

    /// True if the same request may well succeed in a moment: 503 with `Retry-After`, not 500.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Shed { .. }
                | Self::LoadTimedOut { .. }
                | Self::Load(_)
                | Self::RebuildAbandoned(_)
        )
    }
}

/// What kind of failure a [`Store`](crate::ports::Store) met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// It can't be reached, or the link broke.
    Unreachable,
    /// It did not answer within the budget.
    TimedOut,
    /// It answered that it won't: full, read-only, loading.
    Rejected,
    /// It answered something that makes no sense.
    InvalidResponse,
    /// It will never work with this store: wrong version, wrong password.
    Unsupported,
}

/// A failure of the shared cache.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    #[source]
    source: Option<BoxError>,
}

impl StoreError {
    /// An error of the given kind. `message` says what was tried and why it failed; it must not
    /// hold a password.
    #[must_use]
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Adds the error below this one.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// True if the server may not have been reached at all, or never answered: what counts for a
    /// circuit breaker.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unreachable | StoreErrorKind::TimedOut)
    }
}

/// A failure of a [`Source`](crate::ports::Source): the scan did not reach its explicit end.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SourceError {
    message: String,
    #[source]
    source: Option<BoxError>,
}

impl SourceError {
    /// An error that says what was being read.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None }
    }

    /// Adds the error below this one.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }
}

/// OpenReason an instance could not be kept in step with the others.
#[derive(Debug, thiserror::Error)]
#[error("the other instances can't be told of the write: {0}")]
pub struct BackplaneError(pub String);

/// Says of a failed write whether the database has finished with it.
///
/// The guard must know when a write is over. An error that the database *answered* with (a
/// constraint, a conflict, a syntax error) ends it: nothing is under way any more, whatever was
/// committed. An error that came *instead* of an answer (the connection broke while COMMIT was on
/// its way) does not: the row may appear a moment later. Such a write stays open, its key
/// uncached, until the write window has passed (rule A6 of the protocol).
///
/// When in doubt, say `false`: it costs a key its cache for half a minute, no more.
pub trait WriteFailure {
    /// True if nothing of the write is still under way at the database.
    fn outcome_is_known(&self) -> bool;
}

impl WriteFailure for std::convert::Infallible {
    fn outcome_is_known(&self) -> bool {
        match *self {}
    }
}

/// Boxed errors can't tell, so they don't.
impl WriteFailure for BoxError {
    fn outcome_is_known(&self) -> bool {
        #[cfg(any(feature = "postgres", feature = "sqlite"))]
        if let Some(error) = self.downcast_ref::<sqlx::Error>() {
            return error.outcome_is_known();
        }
        false
    }
}

/// Quiesced if the database answered, or was never asked. A lost connection is not; neither are
/// the codes with which PostgreSQL cuts a session off (class 08, class 57P, 40003).
#[cfg(any(feature = "postgres", feature = "sqlite"))]
impl WriteFailure for sqlx::Error {
    fn outcome_is_known(&self) -> bool {
        match self {
            sqlx::Error::Database(answer) => !answer.code().is_some_and(|code| {
                code.starts_with("08") || code.starts_with("57P") || code == "40003"
            }),
            sqlx::Error::RowNotFound
            | sqlx::Error::TypeNotFound { .. }
            | sqlx::Error::ColumnIndexOutOfBounds { .. }
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::Encode(_)
            | sqlx::Error::Decode(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::Configuration(_) => true,
            _ => false,
        }
    }
}

/// OpenReason a key could not be admitted to the gate, so that its write must not commit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdmitError {
    /// The shared cache could not take the write intent that keeps stale entries out (rule B10).
    #[error("the shared cache refused the write's write intent")]
    Store(#[source] StoreError),
    /// The other instances could not be told.
    #[error("the backplane refused the write")]
    Backplane(#[from] BackplaneError),
    /// As many writes are open as the guard allows.
    #[error("{open} writes are open, the limit")]
    TooManyOpen {
        /// The limit.
        open: usize,
    },
    /// The write's time is up, or the guard is shutting down.
    #[error("the write is over")]
    Closed,
}

/// OpenReason a write through the guard did not succeed.
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
}

impl<E> WriteError<E> {
    /// True if the same write may well succeed in a moment.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Begin(_) | Self::TimedOut { .. })
    }
}
