//! Redis as a [`Store`].

mod commands;
mod envelope;
mod fleet_log;
mod link;
mod scripts;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use redis::{
    Client, Cmd, ConnectionAddr, FromRedisValue, IntoConnectionInfo as _, RedisError, RedisResult,
    Value,
};

use crate::error::{StoreError, StoreErrorKind};
use crate::ports::{ClearStep, FleetLog, SlotKey, SlotOp, SlotReply, Store};

use commands::{Form, Meaning, Scripts, interpret, store_error};
use fleet_log::RedisFleetLog;
use link::{For, Link};

/// `SET … NX GET` came with 7.0.
const MIN_MAJOR: u32 = 7;
/// Keys that one step of a clearing looks at: far less than a millisecond of the server's time.
const KEYS_PER_STEP: u32 = 500;

/// The shared cache in a Redis server, version 7.0 or later.
///
/// One multiplexed connection, which heals by itself; clones are cheap and share it. Every entry
/// expires; every operation is one round trip, and so are several together.
#[derive(Clone)]
pub struct RedisStore(Arc<Inner>);

struct Inner {
    link: Link,
    scripts: Scripts,
    endpoint: String,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the URL: it may hold a password.
        f.debug_tuple("RedisStore").field(&self.0.endpoint).finish()
    }
}

/// A Redis URL that can't be used. Doesn't repeat the URL, which may hold a password.
#[derive(Debug, thiserror::Error)]
#[error("{0}; expected redis://HOST:PORT/DB, or redis+unix:///PATH")]
pub struct RedisUrlError(String);

impl RedisStore {
    /// Takes the URL (`redis://…`, `redis+unix://…`). Nothing is connected until it is used, so
    /// that a service can start while Redis is down. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`RedisUrlError`] if the URL isn't one.
    pub fn open(url: &str) -> Result<Self, RedisUrlError> {
        // The driver's message ends with the kind of its error, which adds nothing.
        let broken = |error: RedisError| {
            let message = error.to_string();
            RedisUrlError(message.split(" - ").next().unwrap_or(&message).to_owned())
        };
        let info = url.into_connection_info().map_err(broken)?;
        let endpoint = match info.addr() {
            // An IPv6 address: its colons aren't the port's.
            ConnectionAddr::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
            address => address.to_string(),
        };
        let tcp = redis::io::tcp::TcpSettings::default().set_nodelay(true);
        let client = Client::open(info.set_tcp_settings(tcp)).map_err(broken)?;
        let link = Link::new(client);
        Ok(Self(Arc::new(Inner { link, scripts: Scripts::new(), endpoint })))
    }

    /// Sends a command that may run a script; once more with the script's text, if the server
    /// doesn't have it.
    async fn run<T: FromRedisValue>(
        &self,
        purpose: For<'_>,
        command: impl Fn(Form) -> Cmd,
    ) -> RedisResult<T> {
        match self.0.link.query(purpose, &command(Form::Hash)).await {
            Err(error) if commands::is_unknown_script(&error) => {
                self.0.link.query(purpose, &command(Form::Text)).await
            }
            reply => reply,
        }
    }

    async fn run_op(&self, slot: &SlotKey, op: &SlotOp) -> RedisResult<Value> {
        let purpose = For::Slots(slot.prefix());
        self.run(purpose, |form| self.0.scripts.command(slot, op, form)).await
    }

    /// The reply; leases a slot that holds what its caller can't use first.
    async fn reply(&self, slot: &SlotKey, meaning: Meaning) -> Result<SlotReply, StoreError> {
        match meaning {
            Meaning::Reply(reply) => Ok(reply),
            Meaning::Unusable(stored, lease) => {
                let scripts = &self.0.scripts;
                let command = |form| scripts.lease_instead(slot, &stored, lease, form);
                commands::leased_instead(self.run(For::Slots(slot.prefix()), command).await)
            }
        }
    }

    /// One pipeline.
    async fn run_ops(&self, calls: &[(SlotKey, SlotOp)]) -> Vec<RedisResult<Value>> {
        let Some((first, _)) = calls.first() else { return Vec::new() };
        // All are of one guard.
        let purpose = For::Slots(first.prefix());
        match self.0.link.query_many(purpose, &mut self.0.scripts.pipeline(calls)).await {
            Ok(mut replies) => {
                let missing = || {
                    let message = "fewer replies than commands";
                    Err(RedisError::from((redis::ErrorKind::UnexpectedReturnType, message)))
                };
                replies.resize_with(calls.len(), missing);
                replies
            }
            Err(error) => calls.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

impl Store for RedisStore {
    fn prepare(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let info: RedisResult<String> =
                self.0.link.query(For::Other, redis::cmd("INFO").arg("server")).await;
            let info = info.map_err(|error| store_error("INFO", error))?;
            let version = info
                .lines()
                .find_map(|line| line.strip_prefix("redis_version:"))
                .map_or("unknown", str::trim);
            let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
            match major {
                Some(major) if major >= MIN_MAJOR => Ok(()),
                _ => Err(StoreError::new(
                    StoreErrorKind::Unsupported,
                    format!("redis: the server's version is {version}; 7.0 or later is needed"),
                )),
            }
        })
    }

    fn endpoint(&self) -> String {
        self.0.endpoint.clone()
    }

    fn call<'a>(
        &'a self,
        slot: &'a SlotKey,
        op: SlotOp,
    ) -> BoxFuture<'a, Result<SlotReply, StoreError>> {
        Box::pin(async move {
            let meaning = match self.run_op(slot, &op).await {
                Err(error) if commands::is_refused_lease(&op, &error) => {
                    interpret(slot, &SlotOp::Get, self.run_op(slot, &SlotOp::Get).await)
                }
                reply => interpret(slot, &op, reply),
            };
            self.reply(slot, meaning?).await
        })
    }

    fn call_many<'a>(
        &'a self,
        calls: Vec<(SlotKey, SlotOp)>,
    ) -> BoxFuture<'a, Vec<Result<SlotReply, StoreError>>> {
        Box::pin(async move {
            let replies = self.run_ops(&calls).await;
            let (mut meanings, mut refused) = (Vec::with_capacity(calls.len()), Vec::new());
            for (at, ((slot, op), reply)) in calls.iter().zip(replies).enumerate() {
                if reply.as_ref().is_err_and(|error| commands::is_refused_lease(op, error)) {
                    refused.push(at);
                }
                meanings.push(interpret(slot, op, reply));
            }
            let reads: Vec<_> =
                refused.iter().map(|at| (calls[*at].0.clone(), SlotOp::Get)).collect();
            for (at, reply) in refused.into_iter().zip(self.run_ops(&reads).await) {
                meanings[at] = interpret(&calls[at].0, &SlotOp::Get, reply);
            }
            let mut results = Vec::with_capacity(calls.len());
            for ((slot, _), meaning) in calls.iter().zip(meanings) {
                results.push(match meaning {
                    Ok(meaning) => self.reply(slot, meaning).await,
                    Err(error) => Err(error),
                });
            }
            results
        })
    }

    fn clear_step<'a>(
        &'a self,
        prefix: &'a str,
        from: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ClearStep, StoreError>> {
        Box::pin(async move {
            let step: RedisResult<(u64, String)> = self
                .run(For::Slots(prefix), |form| {
                    let mut command = self.0.scripts.clear_step.command(form, &[]);
                    command.arg(from.unwrap_or("")).arg(commands::names_under(prefix));
                    command.arg(KEYS_PER_STEP);
                    command
                })
                .await;
            let (removed, next) = step.map_err(|error| store_error("clear", error))?;
            Ok(ClearStep::new(removed, (!next.is_empty()).then_some(next)))
        })
    }

    fn fleet_log(&self, namespace: &str) -> Option<Arc<dyn FleetLog>> {
        Some(Arc::new(RedisFleetLog::new(self.clone(), namespace)))
    }
}
