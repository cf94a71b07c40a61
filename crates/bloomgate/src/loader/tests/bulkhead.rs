//! Tests of the bulkhead: permits, shares, the queue and its deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;

use super::super::{Bulkhead, BulkheadLimits, Share};
use crate::clock::{Clock, ManualTime};
use crate::error::ReadError;

const LIMITS: BulkheadLimits =
    BulkheadLimits { permits: 3, unseen: 1, queue: Duration::from_millis(250), waiters: 4 };

fn bulkhead(limits: BulkheadLimits) -> (Bulkhead, ManualTime) {
    let (clock, time) = Clock::manual();
    (Bulkhead::new(limits, clock), time)
}

fn waited(shed: Result<super::super::bulkhead::Permit, ReadError>) -> Duration {
    match shed {
        Err(ReadError::Shed { waited }) => waited,
        other => panic!("not shed: {other:?}"),
    }
}

#[tokio::test]
async fn permits_are_as_many_as_the_limit() {
    let (bulkhead, _time) = bulkhead(LIMITS);
    let mut permits = Vec::new();
    for _ in 0..LIMITS.permits {
        permits.push(bulkhead.enter(Share::Full).await.unwrap());
    }
    assert!(bulkhead.enter(Share::Full).now_or_never().is_none());
    permits.pop();
    assert!(bulkhead.enter(Share::Full).now_or_never().unwrap().is_ok());
}

#[tokio::test]
async fn unseen_ids_leave_permits_for_the_others() {
    let (bulkhead, _time) = bulkhead(LIMITS);
    let _unseen = bulkhead.enter(Share::Unseen).await.unwrap();
    assert!(bulkhead.enter(Share::Unseen).now_or_never().is_none());
    let _first = bulkhead.enter(Share::Full).await.unwrap();
    let _second = bulkhead.enter(Share::Full).await.unwrap();
    assert!(bulkhead.enter(Share::Full).now_or_never().is_none());
}

#[tokio::test]
async fn an_unseen_id_that_waits_for_its_share_holds_no_permit() {
    let (bulkhead, _time) = bulkhead(LIMITS);
    let _unseen = bulkhead.enter(Share::Unseen).await.unwrap();
    let mut waiting = Box::pin(bulkhead.enter(Share::Unseen));
    assert!((&mut waiting).now_or_never().is_none());
    let _first = bulkhead.enter(Share::Full).await.unwrap();
    assert!(bulkhead.enter(Share::Full).now_or_never().is_some());
}

#[tokio::test]
async fn a_share_is_released_when_no_permit_comes_in_time() {
    let (bulkhead, time) = bulkhead(LIMITS);
    let mut permits = Vec::new();
    for _ in 0..LIMITS.permits {
        permits.push(bulkhead.enter(Share::Full).await.unwrap());
    }
    let mut waiting = Box::pin(bulkhead.enter(Share::Unseen));
    assert!((&mut waiting).now_or_never().is_none());
    time.advance(LIMITS.queue);
    assert_eq!(waited(waiting.await), LIMITS.queue);
    permits.clear();
    assert!(bulkhead.enter(Share::Unseen).now_or_never().unwrap().is_ok());
}

#[tokio::test]
async fn a_waiter_is_shed_at_its_deadline_and_not_before() {
    let (bulkhead, time) = bulkhead(LIMITS);
    let mut permits = Vec::new();
    for _ in 0..LIMITS.permits {
        permits.push(bulkhead.enter(Share::Full).await.unwrap());
    }
    let mut early = Box::pin(bulkhead.enter(Share::Full));
    assert!((&mut early).now_or_never().is_none());
    time.advance(LIMITS.queue - Duration::from_millis(1));
    let mut late = Box::pin(bulkhead.enter(Share::Full));
    assert!((&mut late).now_or_never().is_none());
    assert!((&mut early).now_or_never().is_none());
    time.advance(Duration::from_millis(1));
    assert_eq!(waited(early.await), LIMITS.queue);
    assert!((&mut late).now_or_never().is_none());
    // A permit that is free by then is taken, first come, first served.
    permits.pop();
    assert!(late.now_or_never().unwrap().is_ok());
}

#[tokio::test]
async fn a_permit_goes_to_the_longest_waiter() {
    let (bulkhead, _time) = bulkhead(BulkheadLimits { permits: 1, ..LIMITS });
    let permit = bulkhead.enter(Share::Full).await.unwrap();
    let mut first = Box::pin(bulkhead.enter(Share::Full));
    assert!((&mut first).now_or_never().is_none());
    let mut second = Box::pin(bulkhead.enter(Share::Full));
    assert!((&mut second).now_or_never().is_none());
    drop(permit);
    assert!((&mut second).now_or_never().is_none());
    let permit = first.now_or_never().unwrap().unwrap();
    drop(permit);
    assert!(second.now_or_never().unwrap().is_ok());
}

#[tokio::test]
async fn waiters_are_limited_and_a_dropped_waiter_no_longer_counts() {
    let (bulkhead, _time) = bulkhead(LIMITS);
    let mut permits = Vec::new();
    for _ in 0..LIMITS.permits {
        permits.push(bulkhead.enter(Share::Full).await.unwrap());
    }
    let mut waiting = Vec::new();
    for _ in 0..LIMITS.waiters {
        let mut waiter = Box::pin(bulkhead.enter(Share::Full));
        assert!((&mut waiter).now_or_never().is_none());
        waiting.push(waiter);
    }
    assert_eq!(waited(bulkhead.enter(Share::Full).await), Duration::ZERO);
    assert_eq!(waited(bulkhead.enter(Share::Unseen).await), Duration::ZERO);
    waiting.pop();
    assert!(bulkhead.enter(Share::Full).now_or_never().is_none());
    waiting.clear();
    permits.clear();
    assert!(bulkhead.enter(Share::Full).now_or_never().unwrap().is_ok());
}

#[tokio::test]
async fn a_queue_without_time_takes_a_free_permit_and_sheds_otherwise() {
    let (bulkhead, _time) =
        bulkhead(BulkheadLimits { permits: 1, queue: Duration::ZERO, ..LIMITS });
    let _permit = bulkhead.enter(Share::Full).await.unwrap();
    assert_eq!(waited(bulkhead.enter(Share::Full).await), Duration::ZERO);
}

/// Counts the permits in use, and keeps the maximum.
#[derive(Default)]
struct Inside {
    now: AtomicUsize,
    most: AtomicUsize,
}

struct Counted<'a>(&'a Inside);

impl Inside {
    fn enter(&self) -> Counted<'_> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        Counted(self)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_under_concurrent_waiters_of_which_many_are_dropped() {
    let limits = BulkheadLimits {
        permits: 5,
        unseen: 2,
        queue: Duration::from_secs(3_600),
        waiters: 10_000,
    };
    let (bulkhead, _time) = bulkhead(limits);
    let bulkhead = Arc::new(bulkhead);
    let (all, unseen) = (Arc::new(Inside::default()), Arc::new(Inside::default()));
    let tasks: Vec<_> = (0..2_000)
        .map(|n| {
            let (bulkhead, all) = (Arc::clone(&bulkhead), Arc::clone(&all));
            let unseen = Arc::clone(&unseen);
            tokio::spawn(async move {
                let share = match n % 2 {
                    0 => Share::Full,
                    _ => Share::Unseen,
                };
                let _permit = bulkhead.enter(share).await.unwrap();
                let _in_all = all.enter();
                let _in_share = (share == Share::Unseen).then(|| unseen.enter());
                for _ in 0..rand::random_range(0..5_u32) {
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks.iter().step_by(3) {
        tokio::task::yield_now().await;
        task.abort();
    }
    for ended in join_all(tasks).await {
        assert!(ended.is_ok() || ended.unwrap_err().is_cancelled());
    }
    assert!(all.most.load(Ordering::SeqCst) <= limits.permits);
    assert!(unseen.most.load(Ordering::SeqCst) <= limits.unseen);
    // All permits came back. (Tokio makes a task yield that has just polled this many.)
    tokio::task::yield_now().await;
    let mut permits = Vec::new();
    for _ in 0..limits.unseen {
        permits.push(bulkhead.enter(Share::Unseen).now_or_never().unwrap().unwrap());
    }
    for _ in limits.unseen..limits.permits {
        permits.push(bulkhead.enter(Share::Full).now_or_never().unwrap().unwrap());
    }
}
