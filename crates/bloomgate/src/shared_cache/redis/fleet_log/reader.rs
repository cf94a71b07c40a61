//! Reading a fleet's log, over a connection of its own: a read blocks it until something comes.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use redis::RedisResult;
use redis::aio::MultiplexedConnection;
use redis::streams::StreamReadReply;

use super::super::commands::{millis, store_error};
use super::super::link::run_of;
use crate::error::{StoreError, StoreErrorKind};
use crate::ports::{InstanceId, LogEntry, LogPosition, LogReader};

/// Most entries of one answer.
const MAX_READ: usize = 1_000;

/// Reads one stream.
pub(super) struct RedisLogReader {
    connection: MultiplexedConnection,
    log: String,
    run: String,
}

impl fmt::Debug for RedisLogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLogReader").field("log", &self.log).finish_non_exhaustive()
    }
}

impl RedisLogReader {
    /// A reader on this connection, which leads to one server process for all its life.
    pub(super) async fn open(
        mut connection: MultiplexedConnection,
        log: String,
    ) -> Result<Self, StoreError> {
        let run = run_of(&mut connection).await.map_err(|error| store_error("INFO", error))?;
        Ok(Self { connection, log, run })
    }
}

impl LogReader for RedisLogReader {
    fn run(&self) -> &str {
        &self.run
    }

    fn next(
        &mut self,
        after: LogPosition,
        wait: Duration,
    ) -> BoxFuture<'_, Result<Vec<LogEntry>, StoreError>> {
        Box::pin(async move {
            let mut command = redis::cmd("XREAD");
            command.arg("COUNT").arg(MAX_READ);
            // A wait of 0 would be one without an end.
            if millis(wait) > 0 {
                command.arg("BLOCK").arg(millis(wait));
            }
            command.arg("STREAMS").arg(&self.log).arg(after.to_string());
            let reply: RedisResult<Option<StreamReadReply>> =
                command.query_async(&mut self.connection).await;
            let reply = reply.map_err(|error| store_error("XREAD", error))?.unwrap_or_default();
            let ids = reply.keys.into_iter().flat_map(|key| key.ids);
            ids.map(|entry| {
                let position = LogPosition::parse(&entry.id);
                let position = position.ok_or_else(|| invalid("has an id that is none"))?;
                let field = |name| entry.get::<Vec<u8>>(name);
                let (Some(appender), Some(record)) = (field("a"), field("r")) else {
                    return Err(invalid("lacks a field"));
                };
                // The first entry of a fresh log is nobody's.
                let appender = match std::str::from_utf8(&appender) {
                    Ok("") => InstanceId::from_bytes([0; 16]),
                    Ok(hex) => InstanceId::parse_hex(hex)
                        .ok_or_else(|| invalid("has an appender that is none"))?,
                    Err(_) => return Err(invalid("has an appender that is none")),
                };
                Ok(LogEntry::new(position, appender, Bytes::from(record)))
            })
            .collect()
        })
    }
}

fn invalid(what: &str) -> StoreError {
    StoreError::new(StoreErrorKind::InvalidResponse, format!("XREAD: an entry of the log {what}"))
}
