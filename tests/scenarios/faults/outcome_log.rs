//! The outcomes of requests, compared with the rows of the database.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use testbed::net::Reply;

use crate::service::Service;

/// Repeated writes that are allowed beside one in ten of the created products, for short runs.
const FREE_REPEATS: u64 = 3;

#[derive(Default)]
pub(crate) struct OutcomeLog {
    /// Answers by workload and status.
    pub(crate) answers: BTreeMap<(&'static str, u16), u64>,
    /// The ids and names of created products.
    pub(crate) created: Vec<(i64, String)>,
    /// Writes that were repeated after an answer that nothing was written.
    pub(crate) repeats: u64,
    /// Names of products that weren't written, as the service said.
    pub(crate) not_written: Vec<String>,
    /// Names of products whose write has an unknown outcome.
    pub(crate) unknown: Vec<String>,
    /// Errors.
    pub(crate) wrong: Vec<String>,
}

impl OutcomeLog {
    /// The number of answers of a workload with a status.
    pub(crate) fn answers(&self, workload: &'static str, status: u16) -> u64 {
        self.answers.get(&(workload, status)).copied().unwrap_or_default()
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (key, count) in other.answers {
            *self.answers.entry(key).or_default() += count;
        }
        self.created.extend(other.created);
        self.repeats += other.repeats;
        self.not_written.extend(other.not_written);
        self.unknown.extend(other.unknown);
        self.wrong.extend(other.wrong);
    }

    /// Fails if more writes were refused while nothing was broken than a busy machine explains.
    pub(crate) fn check_repeats(&self) {
        let created = self.created.len() as u64;
        assert!(
            self.repeats <= FREE_REPEATS + created / 10,
            "{} writes were refused while nothing was broken, {created} succeeded",
            self.repeats
        );
    }

    /// Fails unless the created products are in the database, once each, the products that weren't
    /// written are not, and the service finds every row.
    pub(crate) fn check(&self, service: &Service, rows: &[(i64, String)]) {
        self.check_rows(rows);
        for (id, name) in rows {
            let reply = service.get(&format!("/products/{id}"));
            assert_eq!(reply.status, 200, "{id} {name}: {}", reply.text());
            assert_eq!(name_in(&reply), *name, "{id}");
        }
    }

    fn check_rows(&self, rows: &[(i64, String)]) {
        let found: BTreeSet<&(i64, String)> = rows.iter().collect();
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for (_, name) in rows {
            *by_name.entry(name).or_default() += 1;
        }
        for product in &self.created {
            assert!(found.contains(product), "{product:?} was created and is missing");
        }
        for name in &self.not_written {
            assert_eq!(by_name.get(name.as_str()), None, "{name} was refused, but written");
        }
        for (name, count) in by_name {
            assert_eq!(count, 1, "{name} was refused, but written, and written again");
        }
    }
}

/// The name of the product in a reply.
pub(crate) fn name_in(reply: &Reply) -> String {
    let product: Value = serde_json::from_slice(&reply.body).unwrap();
    product["name"].as_str().unwrap().to_owned()
}

/// True if a write's 503 says that nothing was written, false if it says that the outcome is
/// unknown. Fails on other texts.
pub(crate) fn is_unwritten(reply: &Reply) -> bool {
    let text = reply.text();
    let not_written = text.contains("nothing was written");
    assert!(not_written || text.contains("is not known yet"), "{text}");
    not_written
}

/// Fails unless the reply is a 503 that says when to try again.
pub(crate) fn assert_try_again(reply: &Reply) {
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert!(reply.header("retry-after").is_some(), "{:?}", reply.headers);
}

#[test]
#[should_panic(expected = "twice was refused, but written, and written again")]
fn a_refused_write_that_left_a_row_fails_the_check() {
    let log = OutcomeLog { created: vec![(2, "twice".to_owned())], ..OutcomeLog::default() };
    log.check_rows(&[(1, "twice".to_owned()), (2, "twice".to_owned())]);
}

#[test]
#[should_panic(expected = "was created and is missing")]
fn a_created_product_without_a_row_fails_the_check() {
    let log = OutcomeLog { created: vec![(2, "lost".to_owned())], ..OutcomeLog::default() };
    log.check_rows(&[]);
}

#[test]
#[should_panic(expected = "6 writes were refused while nothing was broken, 20 succeeded")]
fn more_refused_writes_than_a_busy_machine_explains_fail_the_check() {
    let created: Vec<_> = (1..=20).map(|id| (id, format!("product {id}"))).collect();
    let mut log = OutcomeLog { created, repeats: 5, ..OutcomeLog::default() };
    log.check_repeats();
    log.repeats = 6;
    log.check_repeats();
}
