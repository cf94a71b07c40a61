//! What came of requests, compared with what the database has.

use std::collections::BTreeMap;

use serde_json::Value;
use testbed::net::Reply;

use crate::service::Service;

/// What came of it.
#[derive(Default)]
pub(crate) struct OutcomeLog {
    /// Answers by workload and status.
    pub(crate) answers: BTreeMap<(&'static str, u16), u64>,
    /// Products that were created, and their names.
    pub(crate) created: Vec<(i64, String)>,
    /// Names whose write is said not to have happened.
    pub(crate) not_written: Vec<String>,
    /// Names of which it was said that nobody knows.
    pub(crate) unknown: Vec<String>,
    /// What must not have happened.
    pub(crate) wrong: Vec<String>,
}

impl OutcomeLog {
    /// Answers of a kind of workload with a status.
    pub(crate) fn answers(&self, workload: &'static str, status: u16) -> u64 {
        self.answers.get(&(workload, status)).copied().unwrap_or_default()
    }

    /// Compares with what the database has, and asks for every row: none is refused.
    pub(crate) fn check(&self, service: &Service, rows: &[(i64, String)]) {
        for (id, name) in &self.created {
            assert!(rows.contains(&(*id, name.clone())), "{id} {name} was created and is gone");
        }
        for name in &self.not_written {
            assert!(!rows.iter().any(|(_, row)| row == name), "{name} was refused and is there");
        }
        for (id, name) in rows {
            let reply = service.get(&format!("/products/{id}"));
            assert_eq!(reply.status, 200, "{id} {name}: {}", reply.text());
            assert_eq!(name_in(&reply), *name, "{id}");
        }
    }
}

/// The name of the product in a reply.
pub(crate) fn name_in(reply: &Reply) -> String {
    let product: Value = serde_json::from_slice(&reply.body).unwrap();
    product["name"].as_str().unwrap().to_owned()
}

/// True if a write's 503 says that nothing was written, false if it says that nobody knows.
pub(crate) fn is_unwritten(reply: &Reply) -> bool {
    let text = reply.text();
    let not_written = text.contains("nothing was written");
    assert!(not_written || text.contains("is not known yet"), "{text}");
    not_written
}

/// Fails unless it is a 503 that says when to try again.
pub(crate) fn assert_try_again(reply: &Reply) {
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert!(reply.header("retry-after").is_some(), "{:?}", reply.headers);
}
