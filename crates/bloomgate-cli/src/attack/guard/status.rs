//! The part of a guard's status document that the attack tester reads.
//!
//! The document's shape is the library's [`Status`]; [`GuardStatus::parse`] turns it into plain
//! numbers.

use bloomgate::telemetry::{CountsStatus, GateState, Status};
use serde::Deserialize as _;

/// Why a document can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum DocumentError {
    /// Not JSON, or a field has another type.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// JSON, but of something else.
    #[error("it has no object \"counts\"")]
    NoCounts,
}

/// A guard at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GuardStatus {
    /// Whether a guard stands before the loader; `None` if the document doesn't say.
    pub(crate) enabled: Option<bool>,
    /// Why the gate is open, as a word or a sentence; `None` when it is closed or not mentioned.
    pub(crate) gate_open: Option<String>,
    pub(crate) counts: GuardCounts,
}

/// Counters of a guard since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GuardCounts {
    /// Requests refused by the gate.
    pub(crate) refused: u64,
    /// Requests that the gate passed because it could not rule the id out.
    pub(crate) passed_maybe: u64,
    /// Requests that passed because the gate was open.
    pub(crate) passed_unknown: u64,
    /// Requests answered by a sentinel in the local or the shared cache.
    pub(crate) null_hits: u64,
    /// Queries begun.
    pub(crate) loads: u64,
    /// Queries that found no row.
    pub(crate) absent_loads: u64,
    /// Queries that failed.
    pub(crate) errors: u64,
    /// Loads that had to wait too long and never began.
    pub(crate) shed: u64,
    /// Queries that took too long.
    pub(crate) timeouts: u64,
}

impl GuardStatus {
    /// Reads a document. Fields that it lacks count as zero or unknown.
    pub(crate) fn parse(document: &[u8]) -> Result<Self, DocumentError> {
        let document: serde_json::Value = serde_json::from_slice(document)?;
        // Every field may be missing, so that other JSON would pass for a guard without traffic.
        if !document.get("counts").is_some_and(serde_json::Value::is_object) {
            return Err(DocumentError::NoCounts);
        }
        // A missing field has the default of its type, which is not to be taken for an answer.
        let says_enabled = document.get("enabled").is_some();
        let says_state = document.pointer("/gate/state").is_some();
        let Status { enabled, gate, counts, .. } = Status::deserialize(document)?;
        let open = says_state && gate.state == GateState::Open;
        let reason = gate.detail.or(gate.reason).unwrap_or_else(|| "no reason given".to_owned());
        Ok(Self {
            enabled: says_enabled.then_some(enabled),
            gate_open: open.then_some(reason),
            counts: counts.into(),
        })
    }
}

impl From<CountsStatus> for GuardCounts {
    fn from(counts: CountsStatus) -> Self {
        Self {
            refused: counts.refused,
            passed_maybe: counts.passed_maybe,
            passed_unknown: counts.passed_unknown,
            null_hits: counts.local.null_hits.saturating_add(counts.shared.null_hits),
            loads: counts.loader.loads,
            absent_loads: counts.loader.absent,
            errors: counts.loader.errors,
            shed: counts.loader.shed,
            timeouts: counts.loader.timeouts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_document_is_read() {
        let status = GuardStatus::parse(
            br#"{"enabled":true,"name":"product",
            "gate":{"state":"open","reason":"warming_up","detail":"the warm-up has not ended"},
            "counts":{"refused":1,"passed_maybe":2,"passed_unknown":3,
            "local":{"value_hits":9,"null_hits":4,"misses":9},
            "shared":{"value_hits":9,"null_hits":5,"misses":9,"errors":9,"undecodable":9},
            "loader":{"loads":6,"found":9,"absent":7,"errors":8,"timeouts":10,"shed":11,"panics":9}
            }}"#,
        );
        let counts = GuardCounts {
            refused: 1,
            passed_maybe: 2,
            passed_unknown: 3,
            null_hits: 9,
            loads: 6,
            absent_loads: 7,
            errors: 8,
            timeouts: 10,
            shed: 11,
        };
        let gate_open = Some("the warm-up has not ended".to_owned());
        assert_eq!(status.unwrap(), GuardStatus { enabled: Some(true), gate_open, counts });
    }

    #[test]
    fn missing_fields_are_tolerated() {
        let status = |document: &str| GuardStatus::parse(document.as_bytes()).unwrap();
        assert_eq!(status(r#"{"counts":{}}"#), GuardStatus::default());
        assert_eq!(status(r#"{"counts":{"loader":{"absent":2}}}"#).counts.absent_loads, 2);
        let open = status(r#"{"counts":{},"gate":{"state":"open","reason":"link_lost"}}"#);
        assert_eq!(open.gate_open.as_deref(), Some("link_lost"));
        let open = status(r#"{"counts":{},"gate":{"state":"open"}}"#);
        assert_eq!(open.gate_open.as_deref(), Some("no reason given"));
        let closed = status(r#"{"counts":{},"gate":{"state":"closed","reason":null}}"#);
        assert_eq!(closed.gate_open, None);
    }

    #[test]
    fn other_documents_are_refused() {
        for wrong in
            ["", "hello", "[]", "{}", r#"{"counts":[]}"#, r#"{"counts":{"refused":-1}}"#, "null"]
        {
            assert!(GuardStatus::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
