//! Copies of a gate as lists in Redis, over a connection of their own.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use redis::RedisResult;
use redis::aio::MultiplexedConnection;

use super::super::commands::store_error;
use crate::error::StoreError;
use crate::ports::{CopyChannel, WriteId};

/// After how long what nobody takes is gone, in seconds.
const EXPIRES_AFTER: u64 = 60;

/// One connection for copies.
pub(super) struct RedisCopyChannel {
    connection: MultiplexedConnection,
    /// Of the names, in the namespace's slot of a cluster.
    prefix: String,
}

impl fmt::Debug for RedisCopyChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisCopyChannel").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl RedisCopyChannel {
    pub(super) fn new(connection: MultiplexedConnection, prefix: String) -> Self {
        Self { connection, prefix }
    }

    fn list(&self, copy: WriteId) -> String {
        format!("{}{}", self.prefix, copy.to_hex())
    }
}

impl CopyChannel for RedisCopyChannel {
    fn claim(&mut self, copy: WriteId) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let mut command = redis::cmd("SET");
            command.arg(format!("{}:claim", self.list(copy))).arg("1");
            command.arg("NX").arg("EX").arg(EXPIRES_AFTER);
            let set: RedisResult<Option<String>> = command.query_async(&mut self.connection).await;
            Ok(set.map_err(|error| store_error("claim a copy", error))?.is_some())
        })
    }

    fn push(&mut self, copy: WriteId, chunk: Bytes) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            let list = self.list(copy);
            let mut both = redis::pipe();
            both.cmd("RPUSH").arg(&list).arg(&chunk[..]);
            both.cmd("EXPIRE").arg(&list).arg(EXPIRES_AFTER).ignore();
            let pushed: RedisResult<(u64,)> = both.query_async(&mut self.connection).await;
            pushed.map(|(waiting,)| waiting).map_err(|error| store_error("push a copy", error))
        })
    }

    fn waiting(&mut self, copy: WriteId) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            let list = self.list(copy);
            let length: RedisResult<u64> =
                redis::cmd("LLEN").arg(list).query_async(&mut self.connection).await;
            length.map_err(|error| store_error("look at a copy", error))
        })
    }

    fn pop(
        &mut self,
        copy: WriteId,
        wait: Duration,
    ) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>> {
        Box::pin(async move {
            let mut command = redis::cmd("BLPOP");
            command.arg(self.list(copy)).arg(wait.as_secs_f64().max(0.001));
            let popped: RedisResult<Option<(String, Bytes)>> =
                command.query_async(&mut self.connection).await;
            let popped = popped.map_err(|error| store_error("pop a copy", error))?;
            Ok(popped.map(|(_, chunk)| chunk))
        })
    }

    fn discard(&mut self, copy: WriteId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let list = self.list(copy);
            let removed: RedisResult<()> =
                redis::cmd("UNLINK").arg(list).query_async(&mut self.connection).await;
            removed.map_err(|error| store_error("drop a copy", error))
        })
    }
}
