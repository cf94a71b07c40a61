//! The Redis commands of a slot's operations, with the meaning of their replies.

use std::time::Duration;

use bytes::Bytes;
use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, ServerErrorKind, Value};
use sha2::{Digest as _, Sha256};

use super::envelope::{self, Unusable};
use super::scripts;
use crate::error::{StoreError, StoreErrorKind};
use crate::ports::{Filled, LeaseId, Slot, SlotKey, SlotOp, SlotReply};

/// Longest canonical key, in bytes, that is part of a slot's name as it is. Longer ones are
/// replaced by their SHA-256, never cut short.
const MAX_RAW_KEY: usize = 200;

/// How a script is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// By its hash, for a server that has it.
    Hash,
    /// As its text, which the server keeps.
    Text,
}

/// A Lua script.
pub(super) struct Script {
    text: &'static str,
    hash: String,
}

impl Script {
    pub(super) fn new(text: &'static str) -> Self {
        Self { text, hash: redis::Script::new(text).get_hash().to_owned() }
    }

    /// The command that runs the script on these keys; its arguments are to be added.
    pub(super) fn command(&self, form: Form, keys: &[&[u8]]) -> Cmd {
        let mut command = match form {
            Form::Hash => redis::cmd("EVALSHA"),
            Form::Text => redis::cmd("EVAL"),
        };
        match form {
            Form::Hash => command.arg(&self.hash),
            Form::Text => command.arg(self.text),
        };
        command.arg(keys.len());
        for key in keys {
            command.arg(*key);
        }
        command
    }
}

/// All scripts.
pub(super) struct Scripts {
    put_intent: Script,
    clear_intent: Script,
    fill: Script,
    release: Script,
    lease_instead: Script,
    pub(super) clear_step: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            put_intent: Script::new(scripts::PUT_INTENT),
            clear_intent: Script::new(scripts::CLEAR_INTENT),
            fill: Script::new(scripts::FILL),
            release: Script::new(scripts::RELEASE),
            lease_instead: Script::new(scripts::LEASE_INSTEAD),
            clear_step: Script::new(scripts::CLEAR_STEP),
        }
    }

    /// The command that leases a slot that holds `stored`, which can't be used.
    pub(super) fn lease_instead(
        &self,
        slot: &SlotKey,
        stored: &Bytes,
        (lease, ttl): (LeaseId, Duration),
        form: Form,
    ) -> Cmd {
        let mut command = self.lease_instead.command(form, &[&name_of(slot)]);
        // What follows the head is the payload, which may be large.
        command.arg(&stored[..stored.len().min(envelope::HEAD)]).arg(stored.len());
        command.arg(envelope::lease(lease)).arg(millis(ttl));
        command
    }

    /// The script of an operation; `None` if a command of the server's own is enough.
    fn of(&self, op: &SlotOp) -> Option<&Script> {
        match op {
            SlotOp::Get | SlotOp::GetOrLease { .. } => None,
            SlotOp::Fill { .. } => Some(&self.fill),
            SlotOp::Release { .. } => Some(&self.release),
            SlotOp::PutIntent { .. } => Some(&self.put_intent),
            SlotOp::ClearIntent { .. } => Some(&self.clear_intent),
        }
    }

    /// The command of an operation.
    pub(super) fn command(&self, slot: &SlotKey, op: &SlotOp, form: Form) -> Cmd {
        let name = name_of(slot);
        let mut command = match self.of(op) {
            Some(script) => script.command(form, &[&name]),
            None => Cmd::new(),
        };
        match op {
            SlotOp::Get => command.arg("GET").arg(name),
            SlotOp::GetOrLease { lease, ttl } => {
                command.arg("SET").arg(name).arg(envelope::lease(*lease));
                command.arg("NX").arg("GET").arg("PX").arg(millis(*ttl))
            }
            SlotOp::Fill { lease, entry, until, ttl } => {
                command.arg(envelope::lease(*lease));
                command.arg(&envelope::encode(slot, entry, *until)[..]).arg(millis(*ttl))
            }
            SlotOp::Release { lease } => command.arg(envelope::lease(*lease)),
            SlotOp::PutIntent { write, ttl } => command.arg(write.to_hex()).arg(millis(*ttl)),
            SlotOp::ClearIntent { write } => command.arg(write.to_hex()),
        };
        command
    }

    /// The commands of several operations. `EVALSHA` of a script that the server doesn't have
    /// would fail in the middle of a pipeline, so that each script's first use carries its text.
    pub(super) fn pipeline(&self, calls: &[(SlotKey, SlotOp)]) -> redis::Pipeline {
        let mut pipeline = redis::Pipeline::with_capacity(calls.len());
        let mut known = Vec::new();
        for (slot, op) in calls {
            let script = self.of(op).map(|script| script.text);
            let form = if script.is_some_and(|text| !known.contains(&text)) {
                known.extend(script);
                Form::Text
            } else {
                Form::Hash
            };
            pipeline.add_command(self.command(slot, op, form));
        }
        pipeline
    }
}

/// What the server's reply to an operation says.
pub(super) enum Meaning {
    Reply(SlotReply),
    /// The slot holds this, which the caller can't use, and a lease is wanted.
    Unusable(Bytes, (LeaseId, Duration)),
}

/// The server's reply to an operation, as the port's.
pub(super) fn interpret(
    slot: &SlotKey,
    op: &SlotOp,
    reply: RedisResult<Value>,
) -> Result<Meaning, StoreError> {
    let failed = |error| store_error(name_of_op(op), error);
    let reply = reply.map_err(failed)?;
    Ok(Meaning::Reply(match op {
        SlotOp::Get | SlotOp::GetOrLease { .. } => {
            let stored: Option<Bytes> = parse(reply).map_err(failed)?;
            SlotReply::Slot(match (stored, op) {
                (Some(stored), _) => match (decode(slot, &stored), op) {
                    (Some(found), _) => found,
                    (None, SlotOp::GetOrLease { lease, ttl }) => {
                        return Ok(Meaning::Unusable(stored, (*lease, *ttl)));
                    }
                    (None, _) => Slot::Empty,
                },
                (None, SlotOp::GetOrLease { .. }) => Slot::LeaseGranted,
                (None, _) => Slot::Empty,
            })
        }
        SlotOp::Fill { .. } => {
            let stored: i64 = parse(reply).map_err(failed)?;
            SlotReply::Filled(if stored == 1 { Filled::Stored } else { Filled::LeaseLost })
        }
        SlotOp::Release { .. } | SlotOp::PutIntent { .. } | SlotOp::ClearIntent { .. } => {
            let _: i64 = parse(reply).map_err(failed)?;
            SlotReply::Done
        }
    }))
}

/// The reply to [`Scripts::lease_instead`].
pub(super) fn leased_instead(reply: RedisResult<Value>) -> Result<SlotReply, StoreError> {
    let failed = |error| store_error("lease instead of an unusable entry", error);
    let leased: i64 = parse(reply.map_err(failed)?).map_err(failed)?;
    Ok(SlotReply::Slot(if leased == 1 { Slot::LeaseGranted } else { Slot::Empty }))
}

fn parse<T: FromRedisValue>(reply: Value) -> RedisResult<T> {
    Ok(redis::from_redis_value(reply)?)
}

/// `None` if the caller can't use what is stored.
fn decode(slot: &SlotKey, stored: &Bytes) -> Option<Slot> {
    match envelope::decode(slot, stored) {
        Ok(found) => return Some(found),
        // Another build runs beside this one.
        Err(Unusable::OtherSchema) => {}
        Err(Unusable::OtherKey) => {
            tracing::error!("a shared slot holds the entry of another key; it is not used");
        }
        Err(Unusable::Malformed) => {
            tracing::error!("a shared slot holds bytes of another format; they are not used");
        }
    }
    None
}

fn name_of_op(op: &SlotOp) -> &'static str {
    match op {
        SlotOp::Get => "get",
        SlotOp::GetOrLease { .. } => "get or lease",
        SlotOp::Fill { .. } => "fill",
        SlotOp::Release { .. } => "release",
        SlotOp::PutIntent { .. } => "put intent",
        SlotOp::ClearIntent { .. } => "clear intent",
    }
}

/// The driver's error as the port's.
pub(super) fn store_error(what: &'static str, error: RedisError) -> StoreError {
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

/// The server lost the script (a restart, `SCRIPT FLUSH`).
pub(super) fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// Rule B15: such a server refuses to lease, but can still be read.
pub(super) fn is_refused_lease(op: &SlotOp, error: &RedisError) -> bool {
    matches!(op, SlotOp::GetOrLease { .. })
        && (error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
            || matches!(error.code(), Some("OOM" | "READONLY" | "MISCONF" | "NOREPLICAS")))
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

/// The glob pattern of all names of slots under `prefix`; its own special characters are escaped.
pub(super) fn names_under(prefix: &str) -> String {
    let mut pattern = String::with_capacity(prefix.len() + 8);
    for c in prefix.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push_str("[kh]*");
    pattern
}

/// Whole milliseconds, at least 1: Redis refuses an expiry of 0.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).clamp(1, i64::MAX as u64 / 2)
}
