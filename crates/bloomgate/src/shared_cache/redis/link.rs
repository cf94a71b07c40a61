//! The connection to a Redis server: one, multiplexed, replaced when it is dead.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::{Mutex, RwLock};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError,
    RedisResult, ServerErrorKind, Value,
};

use crate::clock::{Clock, Moment};

/// Longest wait for one reply or one connection. The guard's own budget is usually shorter.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(500);
/// Shortest time between two replacements: an address that leads to a replica for good must not
/// cost it a connection for each request.
const REPLACE_INTERVAL: Duration = Duration::from_millis(250);
/// Calls without a reply in a row after which the connection is replaced. A server that is gone
/// without having closed it (a fail-over, a dropped route) would otherwise be waited for until the
/// kernel gives up, a quarter of an hour later.
const MAX_UNANSWERED: u32 = 8;

/// What a command is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum For<'a> {
    /// Slots of this prefix, which only the server may answer that was named for them.
    Slots(&'a str),
    /// Anything else: whoever answers names itself.
    Other,
}

/// The connection.
pub(super) struct Link {
    client: Client,
    current: Mutex<Current>,
    /// The last prefixes of slots of each namespace, each with the server process that keeps them.
    servers: RwLock<HashMap<String, VecDeque<NamedServer>>>,
    /// Calls in a row without a reply.
    unanswered: AtomicU32,
    clock: Clock,
}

#[derive(Default)]
struct Current {
    /// Counts the connections.
    number: u64,
    /// Stands, or is being made in a task of its own: no caller's budget ends that.
    connection: Option<Shared<BoxFuture<'static, RedisResult<Connection>>>>,
    /// When it took the place of another one.
    replaced_at: Option<Moment>,
}

/// A prefix of slots, and the process that may answer for them.
type NamedServer = (Arc<str>, String);

/// Prefixes of a namespace that are remembered: calls with an earlier one may still be on their way.
const MAX_PREFIXES: usize = 4;

/// A connection to one server process, for all its life.
#[derive(Clone)]
struct Connection {
    connection: MultiplexedConnection,
    /// The process; empty if the server doesn't say.
    run: Arc<str>,
}

impl Link {
    /// Connects to nothing yet.
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            current: Mutex::default(),
            servers: RwLock::default(),
            unanswered: AtomicU32::new(0),
            clock: Clock::system(),
        }
    }

    /// From now on only the server process `run` may answer for slots of `prefix` (rule C17): a
    /// server that took its place may have them as they were earlier.
    pub(super) fn name_server(&self, namespace: &str, prefix: Arc<str>, run: &str) {
        let mut servers = self.servers.write();
        let named = servers.entry(namespace.to_owned()).or_default();
        named.push_front((prefix, run.to_owned()));
        named.truncate(MAX_PREFIXES);
    }

    /// Sends a command and waits for its reply.
    pub(super) async fn query<T: FromRedisValue>(
        &self,
        purpose: For<'_>,
        command: &Cmd,
    ) -> RedisResult<T> {
        let (number, mut connection) = self.connection(purpose).await?;
        let reply = self.await_reply(command.query_async(&mut connection)).await;
        if let Err(error) = &reply {
            self.look_at(error, number);
        }
        reply
    }

    /// Sends all commands at once and waits for their replies, which fail one by one.
    pub(super) async fn query_many(
        &self,
        purpose: For<'_>,
        commands: &mut Pipeline,
    ) -> RedisResult<Vec<RedisResult<Value>>> {
        let (number, mut connection) = self.connection(purpose).await?;
        let commands = commands.ignore_errors();
        let replies: RedisResult<Vec<RedisResult<Value>>> =
            self.await_reply(commands.query_async(&mut connection)).await;
        if let Err(error) = &replies {
            self.look_at(error, number);
        }
        for error in replies.iter().flatten().filter_map(|reply| reply.as_ref().err()) {
            self.look_at(error, number);
        }
        replies
    }

    /// The connection, and its number.
    async fn connection(&self, purpose: For<'_>) -> RedisResult<(u64, MultiplexedConnection)> {
        let (number, connecting) = {
            let mut current = self.current.lock();
            let next = current.number + 1;
            if current.connection.is_none() {
                let task = tokio::spawn(connect(self.client.clone()));
                let connecting = async move { task.await.unwrap_or_else(|_| Err(gone())) };
                current.connection = Some(connecting.boxed().shared());
                current.number = next;
            }
            (current.number, current.connection.clone())
        };
        let Some(connecting) = connecting else { return Err(gone()) };
        let Connection { connection, run } = match self.await_reply(connecting).await {
            Ok(connection) => connection,
            Err(error) => {
                self.forget(number);
                return Err(error);
            }
        };
        if let For::Slots(prefix) = purpose {
            let servers = self.servers.read();
            let named = servers.values().flatten().find(|(of, _)| **of == *prefix);
            if named.is_some_and(|(_, named)| **named != *run) {
                let message = "another server answers than the one that the fleet's log is kept by";
                return Err(RedisError::from(io::Error::new(io::ErrorKind::NotConnected, message)));
            }
        }
        Ok((number, connection))
    }

    /// Drops the connection of this number; the next call makes a new one.
    fn forget(&self, number: u64) {
        let mut current = self.current.lock();
        if current.number == number {
            current.connection = None;
        }
    }

    /// A further connection, for commands that block it. Waits up to `budget` until it stands, and
    /// for a reply as long as the caller does.
    pub(super) async fn open_another(
        &self,
        budget: Duration,
    ) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(budget))
            .set_response_timeout(None);
        self.client.get_multiplexed_async_connection_with_config(&config).await
    }

    /// Waits for a reply and counts the calls that get none.
    async fn await_reply<T>(&self, call: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
        let mut pending = PendingCall(Some(self));
        let reply = call.await;
        if !reply.as_ref().is_err_and(RedisError::is_timeout) {
            pending.0 = None;
            self.unanswered.store(0, Ordering::Relaxed);
        }
        reply
    }

    /// A dead connection is replaced at once. A demoted primary keeps its connections open and
    /// answers READONLY for ever.
    fn look_at(&self, error: &RedisError, number: u64) {
        if error.is_unrecoverable_error() {
            self.forget(number);
        } else if error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly) {
            self.replace();
        }
    }

    /// Drops the connection, unless the last one was dropped a moment ago.
    fn replace(&self) {
        let now = self.clock.now();
        let mut current = self.current.lock();
        if current.replaced_at.is_some_and(|at| now.since(at) < REPLACE_INTERVAL) {
            return;
        }
        current.connection = None;
        current.replaced_at = Some(now);
    }
}

/// A call under way. Dropped before its reply came, it counts as one without a reply: a caller
/// whose budget is over drops it so.
struct PendingCall<'a>(Option<&'a Link>);

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        let Some(link) = self.0 else { return };
        if link.unanswered.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_UNANSWERED {
            link.unanswered.store(0, Ordering::Relaxed);
            link.replace();
        }
    }
}

/// A connection, and to which process (rule C17: before its first command).
async fn connect(client: Client) -> RedisResult<Connection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(RESPONSE_TIMEOUT))
        .set_response_timeout(Some(RESPONSE_TIMEOUT));
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
    let run = Arc::from(run_of(&mut connection).await?);
    Ok(Connection { connection, run })
}

/// The name of the server process at the other end; empty if it doesn't say.
pub(super) async fn run_of(connection: &mut MultiplexedConnection) -> RedisResult<String> {
    let info: RedisResult<String> = redis::cmd("INFO").arg("server").query_async(connection).await;
    match info {
        Ok(info) => Ok(info
            .lines()
            .find_map(|line| line.strip_prefix("run_id:"))
            .map_or_else(String::new, |run| run.trim().to_owned())),
        // As the script of the fleet does.
        Err(error) if error.code() == Some("NOPERM") => Ok(String::new()),
        Err(error) => Err(error),
    }
}

fn gone() -> RedisError {
    RedisError::from(io::Error::new(io::ErrorKind::NotConnected, "the connection is gone"))
}
