//! The connection to a Redis server: one, multiplexed, given up when it has gone dead.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{
    Client, Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, ScriptInvocation,
    ServerErrorKind,
};

use crate::clock::{Clock, Moment};

/// Longest wait for one answer or one connection. The guard's own budget is usually the shorter.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);
/// Between two connections that are given up: an address that leads to a replica for good must not
/// cost it a connection for each request.
const GIVE_UP_EVERY: Duration = Duration::from_millis(250);
/// Answers that may fail to come in a row before the connection is given up. A peer that vanished
/// without closing it (a fail-over, a dropped route) would otherwise be waited for until the
/// kernel gives up, a quarter of an hour later.
const MAX_UNANSWERED: u32 = 8;

/// The connection.
pub(super) struct Link {
    client: Client,
    connection: Mutex<Connection>,
    /// Calls in a row whose answer did not come.
    unanswered: AtomicU32,
    clock: Clock,
}

struct Connection {
    manager: ConnectionManager,
    /// When the last one was given up.
    given_up: Option<Moment>,
}

impl Link {
    /// Connects to nothing yet.
    pub(super) fn new(client: Client) -> RedisResult<Self> {
        let manager = connect(&client)?;
        Ok(Self {
            client,
            connection: Mutex::new(Connection { manager, given_up: None }),
            unanswered: AtomicU32::new(0),
            clock: Clock::system(),
        })
    }

    /// Sends a command.
    pub(super) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        let mut connection = self.connection.lock().manager.clone();
        self.judge(command.query_async(&mut connection)).await
    }

    /// Runs a script.
    pub(super) async fn invoke<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> RedisResult<T> {
        let mut connection = self.connection.lock().manager.clone();
        self.judge(script.invoke_async(&mut connection)).await
    }

    /// Waits for an answer and judges the connection by it.
    async fn judge<T>(&self, call: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
        let mut asking = Asking(Some(self));
        let answer = call.await;
        if !answer.as_ref().is_err_and(RedisError::is_timeout) {
            asking.0 = None;
            self.unanswered.store(0, Ordering::Relaxed);
        }
        // A demoted primary keeps its connections open and answers READONLY for ever.
        let read_only =
            |error: &RedisError| error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly);
        if answer.as_ref().is_err_and(read_only) {
            self.give_up();
        }
        answer
    }

    /// Gives the connection up; the next call makes a new one.
    fn give_up(&self) {
        let now = self.clock.now();
        let mut connection = self.connection.lock();
        if connection.given_up.is_some_and(|at| now.since(at) < GIVE_UP_EVERY) {
            return;
        }
        if let Ok(manager) = connect(&self.client) {
            *connection = Connection { manager, given_up: Some(now) };
        }
    }
}

/// Counts a call as unanswered unless told otherwise: a caller whose budget is over drops it.
struct Asking<'a>(Option<&'a Link>);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let Some(link) = self.0 else { return };
        if link.unanswered.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_UNANSWERED {
            link.unanswered.store(0, Ordering::Relaxed);
            link.give_up();
        }
    }
}

fn connect(client: &Client) -> RedisResult<ConnectionManager> {
    let config = ConnectionManagerConfig::new()
        .set_number_of_retries(1)
        .set_min_delay(Duration::from_millis(10))
        .set_max_delay(Duration::from_millis(50))
        .set_response_timeout(Some(ANSWER_WITHIN))
        .set_connection_timeout(Some(ANSWER_WITHIN));
    ConnectionManager::new_lazy_with_config(client.clone(), config)
}
