//! Reads after an answered change, which must see the change.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use testbed::net::Reply;

use crate::client::{Client, name_of, retry_unwritten};
use crate::environment::{Environment, StopOnDrop, assert_no_panic};
use crate::service::Service;

const ID: i64 = 7;
const READERS: usize = 4;
/// The version of a deleted product.
const GONE: u64 = u64::MAX;

fn version(reply: &Reply) -> u64 {
    if reply.status == 404 {
        return GONE;
    }
    let name = name_of(reply);
    // The name of the demonstration product.
    if name == "Product 7" { 0 } else { name.strip_prefix("version ").unwrap().parse().unwrap() }
}

/// Changes the product while several clients read it. A read that starts after an answered change
/// must not return an older version.
fn never_older(service: &Service) {
    let (answered, asked) = (AtomicU64::new(0), AtomicU64::new(0));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                let mut client = Client::of(service);
                while !done.load(Ordering::SeqCst) {
                    let oldest = answered.load(Ordering::SeqCst);
                    let seen = version(&client.get(ID));
                    let newest = asked.load(Ordering::SeqCst);
                    assert!(seen >= oldest, "version {seen} after {oldest} was answered");
                    assert!(seen <= newest, "version {seen} before it was written");
                }
            });
        }
        let _stop = StopOnDrop(&done);
        let mut client = Client::of(service);
        for number in 1..=testbed::repetitions(200, 500) {
            asked.store(number, Ordering::SeqCst);
            let put = retry_unwritten(|| client.put(ID, &format!("version {number}")));
            assert_eq!(version(&put), number);
            answered.store(number, Ordering::SeqCst);
            assert_eq!(version(&client.get(ID)), number);
        }
        asked.store(GONE, Ordering::SeqCst);
        let deleted = retry_unwritten(|| client.delete(ID));
        assert_eq!(deleted.status, 204, "{}", deleted.text());
        answered.store(GONE, Ordering::SeqCst);
        for _ in 0..100 {
            assert_eq!(client.get(ID).status, 404);
        }
    });
}

fn deleted_ids_are_gone(service: &Service) {
    let mut client = Client::of(service);
    for id in 101..=200 {
        // Half of them are in the caches.
        if id % 2 == 0 {
            assert_eq!(client.get(id).status, 200);
        }
        assert_eq!(retry_unwritten(|| client.delete(id)).status, 204, "{id}");
        assert_eq!(client.get(id).status, 404, "{id}");
        assert_eq!(retry_unwritten(|| client.delete(id)).status, 404, "{id}");
        assert_eq!(retry_unwritten(|| client.put(id, "deleted")).status, 404, "{id}");
        assert_eq!(client.get(id).status, 404, "{id}");
    }
}

fn nothing_stale(env: &Environment, flags: &[&str]) {
    let service = env.serve(200, flags);
    never_older(&service);
    deleted_ids_are_gone(&service);
    service.until_idle();
    if env.has_redis() {
        env.until_only_entries();
    }
    assert_no_panic(&service);
}

#[test]
fn case_29_no_reader_sees_a_value_older_than_an_answered_change_on_sqlite() {
    nothing_stale(&Environment::sqlite(), &[]);
}

#[test]
fn case_29_no_reader_sees_a_value_older_than_an_answered_change_on_postgres() {
    nothing_stale(&Environment::fleet(), &[]);
}

#[test]
fn case_29_no_reader_sees_a_value_older_than_an_answered_change_behind_an_open_gate() {
    nothing_stale(&Environment::sqlite_and_redis(), &["--gate", "open"]);
}
