//! Errors that leave a write's outcome unknown, errors that end a connection.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use sqlx::error::{DatabaseError, ErrorKind};

use crate::error::{BoxError, WriteFailure};

/// An error that the database answered with.
#[derive(Debug)]
struct Answer(&'static str);

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Answer {}

impl DatabaseError for Answer {
    fn message(&self) -> &str {
        self.0
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(self.0))
    }

    fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn Error + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn Error + Send + Sync + 'static> {
        self
    }

    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

fn answer(code: &'static str) -> sqlx::Error {
    sqlx::Error::Database(Box::new(Answer(code)))
}

/// Codes with which PostgreSQL ends a session, COMMIT done or not: connection exceptions, and
/// administrator commands, crashes and restarts.
const SESSION_ENDS: [&str; 7] = ["08000", "08003", "08006", "57P01", "57P02", "57P03", "57P05"];
/// Codes of statements that failed: unique violation, serialization failure, query canceled,
/// syntax error, and SQLite's busy.
const STATEMENT_FAILS: [&str; 5] = ["23505", "40001", "57014", "42601", "5"];

#[test]
fn an_answer_that_ends_the_session_leaves_the_outcome_of_a_write_unknown() {
    for code in SESSION_ENDS.into_iter().chain(["40003"]) {
        assert!(!answer(code).outcome_is_known(), "{code}");
        assert!(!BoxError::from(answer(code)).outcome_is_known(), "{code}, boxed");
    }
    for code in STATEMENT_FAILS {
        assert!(answer(code).outcome_is_known(), "{code}");
        assert!(BoxError::from(answer(code)).outcome_is_known(), "{code}, boxed");
    }
}

#[test]
fn a_lost_connection_leaves_the_outcome_of_a_write_unknown() {
    let lost = || sqlx::Error::Io(std::io::Error::other("reset"));
    assert!(!lost().outcome_is_known());
    assert!(!sqlx::Error::Protocol("an answer to another question".into()).outcome_is_known());
    assert!(!sqlx::Error::WorkerCrashed.outcome_is_known());
    assert!(!BoxError::from("of no known type").outcome_is_known());
    // Nothing was sent.
    assert!(sqlx::Error::PoolTimedOut.outcome_is_known());
    assert!(sqlx::Error::PoolClosed.outcome_is_known());
}

#[cfg(feature = "postgres")]
#[test]
fn an_answer_that_ends_the_session_breaks_a_postgres_connection() {
    use crate::sql::SqlDatabase as _;

    for code in SESSION_ENDS {
        assert!(sqlx::Postgres::is_broken(&answer(code)), "{code}");
    }
    for code in STATEMENT_FAILS {
        assert!(!sqlx::Postgres::is_broken(&answer(code)), "{code}");
    }
    assert!(!sqlx::Postgres::is_broken(&sqlx::Error::RowNotFound));
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_terminated_backend_of_a_real_server_answers_with_57p01() {
    let url = testbed::PostgresServer::shared().create_database();
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(1);
    let pool = pool.connect(&url).await.unwrap();
    let terminate = "SELECT pg_terminate_backend(pg_backend_pid())";
    let error = sqlx::query(terminate).fetch_all(&pool).await.unwrap_err();
    let code = error.as_database_error().and_then(DatabaseError::code);
    assert_eq!(code.as_deref(), Some("57P01"), "{error}");
    assert!(!error.outcome_is_known());
}
