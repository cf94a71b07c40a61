//! The outcome of a failed write: known or unknown.

use std::fmt;

use super::BoxError;

/// Says of a failed write whether the database has finished with it.
///
/// The guard must know when a write is over. An error that the database *answered* with (a
/// constraint, a conflict, a syntax error) ends it: nothing is under way any more, whatever was
/// committed. An error that came *instead* of an answer (the connection broke while COMMIT was on
/// its way) does not: the row may appear a moment later. Such a write stays open, its key
/// uncached, until the write window has passed (rule A6 of the protocol).
///
/// When in doubt, say `false`: it costs a key its cache for half a minute, no more.
///
/// Implemented for `sqlx::Error` (features `postgres`, `sqlite`), `tokio_postgres::Error` (feature
/// `tokio-postgres`), `anyhow::Error` (feature `anyhow`: the outcome of whichever of these is the
/// root), and boxed errors. An error type of another crate is wrapped in [`Known`] or [`Unknown`].
pub trait WriteFailure {
    /// True if nothing of the write is still under way at the database.
    fn outcome_is_known(&self) -> bool;
}

/// An error of another crate that ends the write: the database answered, or was never asked.
///
/// ```
/// use bloomgate::{Known, WriteFailure};
///
/// let conflict = std::io::Error::other("409 Conflict");
/// assert!(Known(conflict).outcome_is_known());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known<E>(pub E);

/// An error of another crate after which the write may still be under way.
///
/// ```
/// use bloomgate::{Unknown, WriteFailure};
///
/// let lost = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
/// assert!(!Unknown(lost).outcome_is_known());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown<E>(pub E);

macro_rules! wrapper {
    ($wrapper:ident, $known:literal) => {
        impl<E> WriteFailure for $wrapper<E> {
            fn outcome_is_known(&self) -> bool {
                $known
            }
        }

        impl<E: fmt::Display> fmt::Display for $wrapper<E> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl<E: std::error::Error> std::error::Error for $wrapper<E> {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                self.0.source()
            }
        }
    };
}
wrapper!(Known, true);
wrapper!(Unknown, false);

impl WriteFailure for std::convert::Infallible {
    fn outcome_is_known(&self) -> bool {
        match *self {}
    }
}

/// The outcome is known if the error is one that can tell and says so.
impl WriteFailure for BoxError {
    fn outcome_is_known(&self) -> bool {
        can_tell(&**self)
    }
}

/// The outcome is known if the root error is one that can tell and says so.
#[cfg(feature = "anyhow")]
impl WriteFailure for anyhow::Error {
    fn outcome_is_known(&self) -> bool {
        // The whole chain: context is put around the error that came from the driver.
        self.chain().any(can_tell)
    }
}

/// Whether this very error is of a type that knows its outcome, and the outcome is known.
fn can_tell(error: &(dyn std::error::Error + 'static)) -> bool {
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    if let Some(error) = error.downcast_ref::<sqlx::Error>() {
        return error.outcome_is_known();
    }
    #[cfg(feature = "tokio-postgres")]
    if let Some(error) = error.downcast_ref::<tokio_postgres::Error>() {
        return error.outcome_is_known();
    }
    let _ = error;
    false
}

/// True for the codes with which PostgreSQL cuts a session off rather than answer a statement
/// (class 08, class 57P, 40003): <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "tokio-postgres"))]
fn session_was_cut_off(code: &str) -> bool {
    code.starts_with("08") || code.starts_with("57P") || code == "40003"
}

/// Known if the database answered, or was never asked. A lost connection is neither, nor are the
/// codes with which PostgreSQL cuts a session off.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
impl WriteFailure for sqlx::Error {
    fn outcome_is_known(&self) -> bool {
        match self {
            sqlx::Error::Database(answer) => {
                !answer.code().is_some_and(|code| session_was_cut_off(&code))
            }
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

/// Known if the server answered with a code that doesn't cut the session off.
#[cfg(feature = "tokio-postgres")]
impl WriteFailure for tokio_postgres::Error {
    fn outcome_is_known(&self) -> bool {
        self.code().is_some_and(|code| !session_was_cut_off(code.code()))
    }
}

#[cfg(all(test, feature = "anyhow", feature = "sqlite"))]
mod tests {
    use super::*;

    #[test]
    fn context_around_an_error_hides_neither_outcome() {
        let known = anyhow::Error::from(sqlx::Error::RowNotFound).context("renaming a product");
        assert!(known.outcome_is_known());
        let lost = sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        let unknown = anyhow::Error::from(lost).context("renaming a product");
        assert!(!unknown.outcome_is_known());
        assert!(!anyhow::anyhow!("something else").outcome_is_known());
    }

    #[test]
    fn boxed_errors_are_unknown_unless_they_can_tell() {
        let known: BoxError = sqlx::Error::RowNotFound.into();
        assert!(known.outcome_is_known());
        let unknown: BoxError = "something else".into();
        assert!(!unknown.outcome_is_known());
    }
}
