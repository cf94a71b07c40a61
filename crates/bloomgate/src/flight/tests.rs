//! Which request may join which flight; slots that are freed.

use std::sync::Arc;

use super::*;

fn key(id: i64) -> KeyBytes {
    KeyBytes::of(&id)
}

const CALM: KeyVersion = KeyVersion { generation: 1, open: false, coherent: true };

fn started<T>(role: Role<T>) -> (Waiter<T>, Leader<T>) {
    match role {
        Role::Leader(waiter, leader) => (waiter, leader),
        Role::Follower(_) => panic!("joined instead of starting"),
        Role::Full => panic!("full"),
    }
}

fn joined<T>(role: Role<T>) -> Waiter<T> {
    match role {
        Role::Follower(waiter) => waiter,
        Role::Leader(..) => panic!("started instead of joining"),
        Role::Full => panic!("full"),
    }
}

#[tokio::test]
async fn callers_of_one_generation_share_a_flight() {
    let flights = Arc::new(Flights::new(8));
    let (first, leader) = started(flights.join_or_lead(&key(1), CALM));
    leader.start();
    let second = joined(flights.join_or_lead(&key(1), CALM));
    leader.publish(7);
    drop(leader);
    assert_eq!((first.outcome().await, second.outcome().await), (Some(7), Some(7)));
    assert_eq!(flights.running(), 0);
    assert!(flights.by_key.lock().is_empty());
}

#[tokio::test]
async fn case_29_a_caller_after_a_write_starts_its_own_flight() {
    let flights = Arc::new(Flights::new(8));
    let (_first, old) = started(flights.join_or_lead(&key(1), CALM));
    old.start();
    let later = KeyVersion { generation: 3, open: false, coherent: true };
    let (second, new) = started(flights.join_or_lead(&key(1), later));
    old.publish(1);
    drop(old);
    // The old flight's end doesn't take the new one off the map.
    let third = joined(flights.join_or_lead(&key(1), later));
    new.publish(2);
    drop(new);
    assert_eq!((second.outcome().await, third.outcome().await), (Some(2), Some(2)));
    assert_eq!(flights.running(), 0);
}

#[tokio::test]
async fn while_a_key_is_open_only_flights_that_have_asked_nothing_are_joined() {
    let flights = Arc::new(Flights::<u8>::new(8));
    let open = KeyVersion { generation: 2, open: true, coherent: true };
    let (_w, leader) = started(flights.join_or_lead(&key(1), open));
    let _ = joined(flights.join_or_lead(&key(1), open));
    leader.start();
    let _ = started(flights.join_or_lead(&key(1), open));
}

#[tokio::test]
async fn out_of_step_only_flights_that_have_asked_nothing_are_joined() {
    let flights = Arc::new(Flights::new(8));
    let doubtful = KeyVersion { coherent: false, ..CALM };
    let (_first, old) = started(flights.join_or_lead(&key(1), doubtful));
    let _ = joined(flights.join_or_lead(&key(1), doubtful));
    old.start();
    let (second, new) = started(flights.join_or_lead(&key(1), doubtful));
    new.start();
    new.publish(2);
    // Its outcome is known, but another instance may have written since.
    let _ = started(flights.join_or_lead(&key(1), doubtful));
    old.publish(1);
    assert_eq!(second.outcome().await, Some(2));
}

#[tokio::test]
async fn a_flight_begun_out_of_step_is_not_joined_by_a_caller_in_step() {
    let flights = Arc::new(Flights::<u8>::new(8));
    let doubtful = KeyVersion { coherent: false, ..CALM };
    let (_first, old) = started(flights.join_or_lead(&key(1), doubtful));
    let _ = joined(flights.join_or_lead(&key(1), CALM));
    old.start();
    let _ = started(flights.join_or_lead(&key(1), CALM));
}

#[tokio::test]
async fn case_30_a_flight_that_is_dropped_frees_its_slot_and_wakes_its_waiters() {
    let flights = Arc::new(Flights::<u8>::new(8));
    let (waiter, leader) = started(flights.join_or_lead(&key(1), CALM));
    let task = tokio::spawn(async move {
        leader.start();
        std::future::pending::<()>().await;
        drop(leader);
    });
    tokio::task::yield_now().await;
    task.abort();
    assert_eq!(waiter.outcome().await, None);
    assert_eq!(flights.running(), 0);
    let _ = started(flights.join_or_lead(&key(1), CALM));
}

#[test]
fn flights_are_capped() {
    let flights = Arc::new(Flights::<u8>::new(2));
    let _a = started(flights.join_or_lead(&key(1), CALM));
    let _b = started(flights.join_or_lead(&key(2), CALM));
    assert!(matches!(flights.join_or_lead(&key(3), CALM), Role::Full));
    let _ = joined(flights.join_or_lead(&key(1), CALM));
}

#[test]
fn nothing_is_published_under_an_old_generation() {
    let generations = KeyGenerations::new();
    let generation = generations.current(&key(1));
    assert!(generations.publish_if(&key(1), generation, || {}));
    let mut forgotten = false;
    generations.advance(&key(1), || forgotten = true);
    assert!(forgotten);
    assert!(!generations.publish_if(&key(1), generation, || panic!("published")));
}
