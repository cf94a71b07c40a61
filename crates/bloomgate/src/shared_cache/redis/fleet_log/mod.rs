//! A fleet's log and table in Redis.

mod copies;
mod reader;
mod script;
mod view;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use redis::RedisResult;

use super::RedisStore;
use super::commands::{Script, millis, store_error};
use super::link::For;
use crate::error::{StoreError, StoreErrorKind};
use crate::ports::{
    CopyChannel, FleetLog, FleetView, InstanceId, LogFlag, LogIdentity, LogPosition, LogReader,
    Registration, Step, WriteId,
};
use crate::shared_cache::slot_prefix;

use copies::RedisCopyChannel;
use reader::RedisLogReader;
use view::Reply;

/// One hash and one stream of a namespace, in one slot of a cluster.
#[derive(Clone)]
pub(super) struct RedisFleetLog {
    store: RedisStore,
    namespace: String,
    table: String,
    log: String,
    /// Prefix of the names of copies.
    copies: String,
    /// The epoch of a declared single instance; gone once a member registers.
    single: String,
    script: std::sync::Arc<Script>,
    declare_single: std::sync::Arc<Script>,
}

impl fmt::Debug for RedisFleetLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisFleetLog").field("log", &self.log).finish_non_exhaustive()
    }
}

/// An argument of the script.
enum Arg<'a> {
    Text(&'a str),
    Number(u64),
    Bytes(&'a [u8]),
}

impl RedisFleetLog {
    pub(super) fn new(store: RedisStore, namespace: &str) -> Self {
        Self {
            store,
            namespace: namespace.to_owned(),
            table: format!("bloomgate:{{{namespace}}}:members"),
            log: format!("bloomgate:{{{namespace}}}:log"),
            copies: format!("bloomgate:{{{namespace}}}:copy:"),
            single: format!("bloomgate:{{{namespace}}}:single"),
            script: std::sync::Arc::new(Script::new(script::FLEET)),
            declare_single: std::sync::Arc::new(Script::new(script::DECLARE_SINGLE)),
        }
    }

    /// Takes a step.
    async fn run(
        &self,
        step: &'static str,
        identity: Option<&LogIdentity>,
        args: &[Arg<'_>],
    ) -> Result<Option<Reply>, StoreError> {
        let candidate = WriteId::fresh().to_hex();
        let identity = identity.map_or(["", "", ""], |identity| {
            [&*identity.epoch, &*identity.run, &*identity.replication]
        });
        let keys = [self.table.as_bytes(), self.log.as_bytes(), self.single.as_bytes()];
        let reply: RedisResult<Option<Reply>> = self
            .store
            .run(For::Other, |form| {
                let mut command = self.script.command(form, &keys);
                command.arg(step).arg(&candidate).arg(&identity);
                for arg in args {
                    match arg {
                        Arg::Text(text) => command.arg(text),
                        Arg::Number(number) => command.arg(number),
                        Arg::Bytes(bytes) => command.arg(bytes),
                    };
                }
                command
            })
            .await;
        reply.map_err(|error| store_error(step, error))
    }

    /// A step that always has a view.
    async fn run_some(
        &self,
        step: &'static str,
        identity: Option<&LogIdentity>,
        args: &[Arg<'_>],
    ) -> Result<Reply, StoreError> {
        self.run(step, identity, args).await?.ok_or_else(|| {
            StoreError::new(StoreErrorKind::InvalidResponse, format!("{step}: no view"))
        })
    }

    /// A step that holds under one identity.
    async fn run_under(
        &self,
        step: &'static str,
        identity: &LogIdentity,
        args: &[Arg<'_>],
    ) -> Result<Step, StoreError> {
        let Reply { done, view } = self.run_some(step, Some(identity), args).await?;
        Ok(if done { Step::Done(view) } else { Step::Void(view) })
    }
}

impl FleetLog for RedisFleetLog {
    fn name_server(&self, identity: &LogIdentity) {
        let prefix = slot_prefix(&self.namespace, &identity.slot_epoch());
        self.store.0.link.name_server(&self.namespace, prefix, &identity.run);
    }

    fn endpoint(&self) -> String {
        self.store.0.endpoint.clone()
    }

    fn prepare(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let memory: RedisResult<String> =
                self.store.0.link.query(For::Other, redis::cmd("INFO").arg("memory")).await;
            let memory = memory.map_err(|error| store_error("INFO", error))?;
            let field = |name: &str| {
                memory.lines().find_map(|line| line.strip_prefix(name)).map_or("", str::trim)
            };
            let policy = field("maxmemory_policy:");
            if field("maxmemory:") != "0" && policy.starts_with("allkeys") {
                let message = format!(
                    "redis: maxmemory-policy is {policy}, which may evict the log of the fleet; set \
                     volatile-lru or noeviction"
                );
                return Err(StoreError::new(StoreErrorKind::Unsupported, message));
            }
            Ok(())
        })
    }

    fn register<'a>(
        &'a self,
        registration: &'a Registration,
    ) -> BoxFuture<'a, Result<FleetView, StoreError>> {
        Box::pin(async move {
            let applied = registration.applied.as_ref();
            let position = applied.map_or(LogPosition::START, |(_, position)| *position);
            let args = [
                Arg::Text(&registration.instance.to_hex()),
                Arg::Number(registration.incarnation),
                Arg::Number(millis(registration.lease)),
                Arg::Text(&registration.label),
                Arg::Text(&position.to_string()),
            ];
            let identity = applied.map(|(identity, _)| identity);
            Ok(self.run_some("register", identity, &args).await?.view)
        })
    }

    fn append<'a>(
        &'a self,
        appender: InstanceId,
        record: Bytes,
    ) -> BoxFuture<'a, Result<(LogPosition, FleetView), StoreError>> {
        Box::pin(async move {
            let args = [Arg::Text(&appender.to_hex()), Arg::Bytes(&record)];
            let view = self.run_some("append", None, &args).await?.view;
            Ok((view.last, view))
        })
    }

    fn look(&self) -> BoxFuture<'_, Result<Option<FleetView>, StoreError>> {
        Box::pin(async move { Ok(self.run("look", None, &[]).await?.map(|reply| reply.view)) })
    }

    fn renew<'a>(
        &'a self,
        identity: &'a LogIdentity,
        instance: InstanceId,
        incarnation: u64,
        applied: LogPosition,
    ) -> BoxFuture<'a, Result<Step, StoreError>> {
        Box::pin(async move {
            let (instance, applied) = (instance.to_hex(), applied.to_string());
            let args = [Arg::Text(&instance), Arg::Number(incarnation), Arg::Text(&applied)];
            self.run_under("renew", identity, &args).await
        })
    }

    fn fence<'a>(
        &'a self,
        identity: &'a LogIdentity,
        instance: InstanceId,
        incarnation: u64,
    ) -> BoxFuture<'a, Result<Step, StoreError>> {
        Box::pin(async move {
            let args = [Arg::Text(&instance.to_hex()), Arg::Number(incarnation)];
            self.run_under("fence", identity, &args).await
        })
    }

    fn remove<'a>(
        &'a self,
        identity: &'a LogIdentity,
        instance: InstanceId,
        incarnation: u64,
    ) -> BoxFuture<'a, Result<Step, StoreError>> {
        Box::pin(async move {
            let args = [Arg::Text(&instance.to_hex()), Arg::Number(incarnation)];
            self.run_under("remove", identity, &args).await
        })
    }

    fn set_flag<'a>(
        &'a self,
        identity: &'a LogIdentity,
        flag: LogFlag,
    ) -> BoxFuture<'a, Result<Step, StoreError>> {
        let flag = match flag {
            LogFlag::Settled => "settled",
            LogFlag::OpenSetKnown => "open_set_known",
        };
        Box::pin(async move { self.run_under("flag", identity, &[Arg::Text(flag)]).await })
    }

    fn trim<'a>(
        &'a self,
        identity: &'a LogIdentity,
        seen: LogPosition,
        cap: u64,
    ) -> BoxFuture<'a, Result<Step, StoreError>> {
        Box::pin(async move {
            let args = [Arg::Text(&seen.to_string()), Arg::Number(cap.max(1))];
            self.run_under("trim", identity, &args).await
        })
    }

    fn declare_single(&self) -> BoxFuture<'_, Result<String, StoreError>> {
        Box::pin(async move {
            let candidate = WriteId::fresh().to_hex();
            let keys = [self.table.as_bytes(), self.log.as_bytes(), self.single.as_bytes()];
            let epoch: RedisResult<String> = self
                .store
                .run(For::Other, |form| {
                    let mut command = self.declare_single.command(form, &keys);
                    command.arg(&candidate);
                    command
                })
                .await;
            epoch.map_err(|error| store_error("declare single", error))
        })
    }

    fn open_copies(&self) -> BoxFuture<'_, Result<Box<dyn CopyChannel>, StoreError>> {
        Box::pin(async move {
            let connecting = self.store.0.link.open_another(Duration::from_secs(1)).await;
            let connection = connecting.map_err(|error| store_error("open a copy", error))?;
            let channel = RedisCopyChannel::new(connection, self.copies.clone());
            Ok(Box::new(channel) as Box<dyn CopyChannel>)
        })
    }

    fn follow(&self) -> BoxFuture<'_, Result<Box<dyn LogReader>, StoreError>> {
        Box::pin(async move {
            let connecting = self.store.0.link.open_another(Duration::from_secs(1)).await;
            let connection = connecting.map_err(|error| store_error("follow", error))?;
            let reader = RedisLogReader::open(connection, self.log.clone()).await?;
            Ok(Box::new(reader) as Box<dyn LogReader>)
        })
    }
}
