//! Values as JSON. A type's own (de)serialiser may panic; that costs the entry, not the flight.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;

use super::Value;

/// The value as JSON; `None`, and a line in the log, if it can't be.
pub(super) fn encode<V: Value>(value: &V) -> Option<Bytes> {
    let encoded = catch_unwind(AssertUnwindSafe(|| serde_json::to_vec(value)));
    match encoded {
        Ok(Ok(json)) => Some(Bytes::from(json)),
        Ok(Err(error)) => {
            tracing::error!(%error, "a value can't be written as JSON, so it isn't shared");
            None
        }
        Err(_) => {
            tracing::error!("writing a value as JSON panicked, so it isn't shared");
            None
        }
    }
}

/// The value of some JSON; `None`, and a line in the log, if it isn't one.
pub(super) fn decode<V: Value>(payload: &[u8]) -> Option<V> {
    let decoded = catch_unwind(AssertUnwindSafe(|| serde_json::from_slice(payload)));
    match decoded {
        Ok(Ok(value)) => Some(value),
        Ok(Err(error)) => {
            tracing::warn!(%error, "a shared value can't be read; the database is asked");
            None
        }
        Err(_) => {
            tracing::error!("reading a shared value panicked; the database is asked");
            None
        }
    }
}
