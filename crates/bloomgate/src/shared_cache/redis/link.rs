//! The connection to a Redis server: one, multiplexed, replaced when it is dead.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::{ConnectionManager, ConnectionManagerConfig, MultiplexedConnection};
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

/// The connection.
pub(super) struct Link {
    client: Client,
    connection: Mutex<Connection>,
    /// Calls in a row without a reply.
    unanswered: AtomicU32,
    clock: Clock,
}

struct Connection {
    manager: ConnectionManager,
    /// When it took the place of another one.
    replaced_at: Option<Moment>,
}

impl Link {
    /// Connects to nothing yet.
    pub(super) fn new(client: Client) -> RedisResult<Self> {
        let manager = connect(&client)?;
        Ok(Self {
            client,
            connection: Mutex::new(Connection { manager, replaced_at: None }),
            unanswered: AtomicU32::new(0),
            clock: Clock::system(),
        })
    }

    /// Sends a command and waits for its reply.
    pub(super) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        let mut connection = self.connection.lock().manager.clone();
        let reply = self.await_reply(command.query_async(&mut connection)).await;
        if let Err(error) = &reply {
            self.replace_if_demoted(error);
        }
        reply
    }

    /// Sends all commands at once and waits for their replies, which fail one by one.
    pub(super) async fn query_many(
        &self,
        commands: &mut Pipeline,
    ) -> RedisResult<Vec<RedisResult<Value>>> {
        let mut connection = self.connection.lock().manager.clone();
        let commands = commands.ignore_errors();
        let replies: RedisResult<Vec<RedisResult<Value>>> =
            self.await_reply(commands.query_async(&mut connection)).await;
        for error in replies.iter().flatten().filter_map(|reply| reply.as_ref().err()) {
            self.replace_if_demoted(error);
        }
        replies
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

    /// A demoted primary keeps its connections open and answers READONLY for ever.
    fn replace_if_demoted(&self, error: &RedisError) {
        if error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly) {
            self.replace();
        }
    }

    /// Drops the connection; the next call makes a new one.
    fn replace(&self) {
        let now = self.clock.now();
        let mut connection = self.connection.lock();
        if connection.replaced_at.is_some_and(|at| now.since(at) < REPLACE_INTERVAL) {
            return;
        }
        if let Ok(manager) = connect(&self.client) {
            *connection = Connection { manager, replaced_at: Some(now) };
        }
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

fn connect(client: &Client) -> RedisResult<ConnectionManager> {
    let config = ConnectionManagerConfig::new()
        .set_number_of_retries(1)
        .set_min_delay(Duration::from_millis(10))
        .set_max_delay(Duration::from_millis(50))
        .set_response_timeout(Some(RESPONSE_TIMEOUT))
        .set_connection_timeout(Some(RESPONSE_TIMEOUT));
    ConnectionManager::new_lazy_with_config(client.clone(), config)
}
