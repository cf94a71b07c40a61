//! Fixtures that start real servers for tests.
//!
//! | fixture | what it starts |
//! |---|---|
//! | [`RedisServer`] | `redis-server`, 7.0 or later, on a free port and on a Unix socket |
//! | [`PostgresServer`] | PostgreSQL on a Unix socket, from a cached template |
//! | [`Program`] | any program, with its output, its signals and what it costs |
//!
//! [`workspace_binary`] finds the programs of this workspace, and [`net`] talks HTTP to them
//! byte for byte.
//!
//! Every server has a temp folder of its own. Both are gone when the fixture is dropped, and also
//! when the test process dies without dropping anything: a watchdog holds one end of a pipe whose
//! other end only the test process has. So a fixture may live in a `static`.
//!
//! A server program that is missing makes the test fail and say which package has it. No test is
//! skipped. All methods block and take `&self`: call them from a blocking task in asynchronous
//! tests when they may take long.
//!
//! ```
//! let redis = testbed::RedisServer::start();
//! redis.command(&["SET", "greeting", "hello"]);
//! assert_eq!(redis.command(&["GET", "greeting"]), "hello");
//! ```

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a fixture that can't do its work fails the test at once, with a message"
)]

mod folder;
pub mod net;
mod postgres_server;
mod postgres_template;
mod process;
mod program;
mod psql;
mod redis_server;
mod resp;
mod watchdog;
mod workspace;

pub use folder::temp_folder;
pub use nix::sys::signal::Signal;
pub use postgres_server::PostgresServer;
pub use program::Program;
pub use redis_server::RedisServer;
pub use resp::Reply as RedisReply;
pub use tempfile::TempDir as TempFolder;
pub use workspace::workspace_binary;
