//! Redis as a [`Store`].

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use redis::{Client, ErrorKind, IntoConnectionInfo as _, RedisError, Script, ServerErrorKind};
use sha2::{Digest as _, Sha256};

use super::envelope::{self, Unusable};
use super::redis_link::Link;
use super::scripts;
use crate::error::{StoreError, StoreErrorKind};
use crate::ports::{Entry, Filled, InstanceId, LeaseId, Peer, Slot, SlotKey, Store, WriteId};

/// Longest canonical key, in bytes, that stands in a slot's name as it is. Longer ones stand as
/// their SHA-256, never cut short.
const MAX_RAW_KEY: usize = 200;
/// `SET … NX GET` came with 7.0.
const MIN_MAJOR: u32 = 7;

/// The shared cache in a Redis server, version 7.0 or later.
///
/// One multiplexed connection, which heals by itself. Every entry expires; every operation is one
/// round trip.
pub struct RedisStore {
    link: Link,
    scripts: Scripts,
}

struct Scripts {
    put_intent: Script,
    clear_intent: Script,
    fill: Script,
    release: Script,
    heartbeat: Script,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the URL: it may hold a password.
        f.debug_struct("RedisStore").finish_non_exhaustive()
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
        // The driver's message ends with the kind of its error, which tells a reader nothing.
        let broken = |error: RedisError| {
            let message = error.to_string();
            RedisUrlError(message.split(" - ").next().unwrap_or(&message).to_owned())
        };
        let info = url.into_connection_info().map_err(broken)?;
        let tcp = redis::io::tcp::TcpSettings::default().set_nodelay(true);
        let client = Client::open(info.set_tcp_settings(tcp)).map_err(broken)?;
        let scripts = Scripts {
            put_intent: Script::new(scripts::PUT_INTENT),
            clear_intent: Script::new(scripts::CLEAR_INTENT),
            fill: Script::new(scripts::FILL),
            release: Script::new(scripts::RELEASE),
            heartbeat: Script::new(scripts::HEARTBEAT),
        };
        Ok(Self { link: Link::new(client).map_err(broken)?, scripts })
    }

    fn decode(slot: &SlotKey, stored: &Bytes) -> Slot {
        match envelope::decode(slot, stored) {
            Ok(found) => found,
            Err(Unusable::OtherKey) => {
                tracing::error!("a shared slot holds the entry of another key; it is not used");
                Slot::Empty
            }
            Err(Unusable::Garbled) => {
                tracing::error!("a shared slot holds something that is not ours; it is not used");
                Slot::Empty
            }
        }
    }

    async fn read(&self, slot: &SlotKey) -> Result<Slot, StoreError> {
        let stored: Option<Bytes> =
            self.link.query(redis::cmd("GET").arg(name_of(slot))).await.map_err(failed("GET"))?;
        Ok(stored.map_or(Slot::Empty, |stored| Self::decode(slot, &stored)))
    }
}

/// Turns a driver's error into ours.
fn failed(what: &'static str) -> impl Fn(RedisError) -> StoreError {
    move |error| {
        let kind = match error.kind() {
            _ if error.is_timeout() => StoreErrorKind::TimedOut,
            ErrorKind::AuthenticationFailed => StoreErrorKind::Unsupported,
            _ if error.code() == Some("NOAUTH") => StoreErrorKind::Unsupported,
            ErrorKind::Io => StoreErrorKind::Unreachable,
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => StoreErrorKind::InvalidResponse,
            _ if error.is_connection_dropped() || error.is_connection_refusal() => {
                StoreErrorKind::Unreachable
            }
            _ => StoreErrorKind::Rejected,
        };
        StoreError::new(kind, format!("redis: {what}: {error}")).with_source(error)
    }
}

/// The slot's name: prefix, then `k` and the key, or `h` and the digest of a long one.
fn name_of(slot: &SlotKey) -> Vec<u8> {
    let key = slot.key().as_slice();
    let mut name = Vec::with_capacity(slot.prefix().len() + 1 + key.len().min(MAX_RAW_KEY));
    name.extend_from_slice(slot.prefix().as_bytes());
    if key.len() <= MAX_RAW_KEY {
        name.push(b'k');
        name.extend_from_slice(key);
    } else {
        name.push(b'h');
        name.extend_from_slice(&Sha256::digest(key));
    }
    name
}

fn members_of(namespace: &str) -> String {
    format!("bloomgate:{namespace}:members")
}

/// Whole milliseconds, at least 1: Redis refuses an expiry of 0.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).clamp(1, i64::MAX as u64 / 2)
}

fn is_full_or_read_only(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(ServerErrorKind::ReadOnly))
        || matches!(error.code(), Some("OOM" | "READONLY" | "MISCONF" | "NOREPLICAS"))
}

impl Store for RedisStore {
    fn prepare(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let info: String =
                self.link.query(redis::cmd("INFO").arg("server")).await.map_err(failed("INFO"))?;
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

    fn get_or_lease<'a>(
        &'a self,
        slot: &'a SlotKey,
        lease: LeaseId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Slot, StoreError>> {
        Box::pin(async move {
            let mut command = redis::cmd("SET");
            command.arg(name_of(slot)).arg(envelope::lease(lease));
            command.arg("NX").arg("GET").arg("PX").arg(millis(ttl));
            let answer: Result<Option<Bytes>, RedisError> = self.link.query(&command).await;
            match answer {
                Ok(None) => Ok(Slot::LeaseGranted),
                Ok(Some(stored)) => Ok(Self::decode(slot, &stored)),
                // Rule B15: such a server can still be read.
                Err(error) if is_full_or_read_only(&error) => self.read(slot).await,
                Err(error) => Err(failed("SET NX GET")(error)),
            }
        })
    }

    fn get<'a>(&'a self, slot: &'a SlotKey) -> BoxFuture<'a, Result<Slot, StoreError>> {
        Box::pin(self.read(slot))
    }

    fn fill<'a>(
        &'a self,
        slot: &'a SlotKey,
        lease: LeaseId,
        entry: Entry,
        until: u64,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Filled, StoreError>> {
        Box::pin(async move {
            let mut call = self.scripts.fill.key(name_of(slot));
            call.arg(envelope::lease(lease));
            call.arg(&envelope::encode(slot, &entry, until)[..]);
            call.arg(millis(ttl));
            let stored: i64 = self.link.invoke(&call).await.map_err(failed("fill"))?;
            Ok(if stored == 1 { Filled::Stored } else { Filled::LeaseLost })
        })
    }

    fn release<'a>(
        &'a self,
        slot: &'a SlotKey,
        lease: LeaseId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut call = self.scripts.release.key(name_of(slot));
            call.arg(envelope::lease(lease));
            self.link.invoke(&call).await.map_err(failed("release"))
        })
    }

    fn put_intent<'a>(
        &'a self,
        slot: &'a SlotKey,
        write: WriteId,
        lives: Duration,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut call = self.scripts.put_intent.key(name_of(slot));
            call.arg(write.to_hex()).arg(millis(lives));
            self.link.invoke(&call).await.map_err(failed("intent"))
        })
    }

    fn clear_intent<'a>(
        &'a self,
        slot: &'a SlotKey,
        write: WriteId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut call = self.scripts.clear_intent.key(name_of(slot));
            call.arg(write.to_hex());
            self.link.invoke(&call).await.map_err(failed("unmark"))
        })
    }

    fn heartbeat<'a>(
        &'a self,
        namespace: &'a str,
        member: InstanceId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Vec<Peer>, StoreError>> {
        Box::pin(async move {
            let mut call = self.scripts.heartbeat.key(members_of(namespace));
            call.arg(member.to_hex()).arg(millis(ttl));
            let others: Vec<(String, u64)> =
                self.link.invoke(&call).await.map_err(failed("heartbeat"))?;
            Ok(others.into_iter().map(|(member, heartbeats)| Peer { member, heartbeats }).collect())
        })
    }

    fn leave<'a>(
        &'a self,
        namespace: &'a str,
        member: InstanceId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut command = redis::cmd("HDEL");
            command.arg(members_of(namespace)).arg(member.to_hex());
            self.link.query(&command).await.map_err(failed("leave"))
        })
    }
}
