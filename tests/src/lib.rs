//! Fixtures that start real servers for tests.
//!
//! | fixture | what it starts |
//! |---|---|
//! | [`RedisServer`] | `redis-server`, 7.0 or later, on a free port and on a Unix socket |
//! | [`PostgresServer`] | PostgreSQL on a Unix socket, from a cached template |
//! | [`Program`] | any program, with access to its output, signals, CPU time and memory |
//!
//! [`workspace_binary`] finds the programs of this workspace, and [`net`] talks HTTP to them
//! byte for byte.
//!
//! Every server has its own temp folder. Both are removed when the fixture is dropped, and also
//! when the test process dies without dropping anything, because a watchdog process notices its
//! end. So a fixture may be stored in a `static`. The same holds for the folders of
//! [`temp_folder`].
//!
//! If a server program is missing, the test fails and names the package to install; no test is
//! skipped. All methods block and take `&self`: in asynchronous tests, call those that may take
//! long from a blocking task.
//!
//! ```
//! let redis = testbed::RedisServer::start();
//! redis.command(&["SET", "greeting", "hello"]);
//! assert_eq!(redis.command(&["GET", "greeting"]), "hello");
//! ```

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a fixture that fails ends the test at once, with a message"
)]

mod deep;
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

pub use deep::repetitions;
pub use folder::temp_folder;
pub use nix::sys::signal::Signal;
pub use postgres_server::PostgresServer;
pub use program::Program;
pub use redis_server::RedisServer;
pub use resp::Reply as RedisReply;
pub use tempfile::TempDir as TempFolder;
pub use workspace::workspace_binary;
