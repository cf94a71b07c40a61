//! Callers that are dropped: their loads and writes go on (cases 30, 32 and 55, rule A7).

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::failpoints::At;
use super::fake_table::FakeTable;
use super::harness::{Harness, Mishap, WINDOW, seen};
use super::writer::{Failure, Writer};
use super::{quiet, until, within};
use crate::answer::Tier;
use crate::error::{AdmitError, ReadError, WriteError};
use crate::guard::Admit;

/// More polls than any future here needs.
const MANY: usize = 24;

/// Polls `future` this many times, with other tasks running in between, then drops it. True if
/// it was ready before.
async fn poll_and_drop(polls: usize, future: impl Future) -> bool {
    let mut future = pin!(future);
    for _ in 0..polls {
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

#[tokio::test]
async fn case_30_a_caller_that_goes_away_at_any_point_leaves_the_others_their_answer() {
    for shared in [false, true] {
        let mut cut_short = 0;
        for polls in 0..MANY {
            let harness = Harness::with([7]).open_gate().shared_if(shared).build().await;
            let first = {
                let guard = harness.guard.clone();
                async move { guard.get(&7).await }
            };
            // The others come before the first one is gone.
            let mut first = Box::pin(first);
            let polled = first.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Pending));
            let others: Vec<_> = (0..9).map(|_| harness.spawn_get(7)).collect();
            cut_short += usize::from(!poll_and_drop(polls, first).await);
            for other in others {
                assert_eq!(seen(within(other).await.unwrap().unwrap()).0, Some(1));
            }
            assert_eq!(harness.loads(), 1);
            quiet().await;
            assert_eq!(harness.status().in_flight.loads, 0);
            assert_eq!(harness.seen(7).await, (Some(1), Tier::Local));
        }
        assert!(cut_short >= 2, "no caller was cut short");
    }
}

/// All steps of a load at which its callers may all be gone.
const STEPS: [At; 5] =
    [At::BeforeRead, At::AfterRead, At::BeforeLoad, At::AfterLoad, At::BeforeFill];

#[tokio::test]
async fn case_30_when_all_callers_go_away_nothing_is_left_behind() {
    for step in STEPS {
        let harness = Harness::with([7]).open_gate().shared().build().await;
        let at = harness.failpoints.hold(step);
        let readers: Vec<_> = (0..10).map(|_| harness.spawn_get(7)).collect();
        at.arrived().await;
        for reader in readers {
            reader.abort();
        }
        quiet().await;
        let newcomer = harness.spawn_get(7);
        at.let_all_go();
        assert_eq!(seen(within(newcomer).await.unwrap().unwrap()).0, Some(1), "{step:?}");
        quiet().await;
        assert_eq!(harness.loads(), 1, "{step:?}: the load was shared with the newcomer");
        assert_eq!(harness.status().in_flight.loads, 0, "{step:?}");
        assert_eq!(harness.seen(7).await, (Some(1), Tier::Local), "{step:?}");
        harness.is_tidy().await;
    }
}

#[tokio::test]
async fn case_32_followers_of_a_load_that_panics_get_an_error_and_the_next_request_an_answer() {
    for shared in [false, true] {
        let harness = Harness::with([7, 8]).open_gate().shared_if(shared).build().await;
        let loading = harness.failpoints.hold(At::BeforeLoad);
        harness.mishap(7, Mishap::Panic);
        let readers: Vec<_> = (0..10).map(|_| harness.spawn_get(7)).collect();
        let other = harness.spawn_get(8);
        loading.arrivals(2).await;
        quiet().await;
        loading.let_all_go();
        for reader in readers {
            let failed = within(reader).await.unwrap();
            assert!(matches!(failed, Err(ReadError::LoadPanicked)), "{failed:?}");
        }
        assert_eq!(seen(within(other).await.unwrap().unwrap()).0, Some(1));
        assert_eq!(harness.status().counts.loader.panics, 1);
        quiet().await;
        assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
        harness.is_tidy().await;
    }
}

// Rule A7. However far the caller came, its write ends properly, and what it committed is found.
#[tokio::test]
async fn case_55_a_caller_of_write_that_goes_away_at_any_point_leaves_a_write_that_ends() {
    let mut committed = 0;
    for polls in 0..MANY {
        let harness = Harness::with([]).shared().build().await;
        let rows = harness.table.clone();
        let run = async move {
            tokio::task::yield_now().await;
            rows.commit(7);
            tokio::task::yield_now().await;
            Ok::<_, Failure>(())
        };
        let over = poll_and_drop(polls, harness.guard.write(7, run)).await;
        quiet().await;
        // A future that is never polled writes nothing.
        assert_eq!(harness.table.version(7), usize::from(polls > 0), "over: {over}");
        committed += harness.table.version(7);
        assert_eq!(harness.open_writes(), 0, "{polls} polls");
        assert_eq!(harness.status().counts.writes_unknown, 0);
        assert_eq!(harness.refuses(7), polls == 0);
        if polls > 0 {
            assert_eq!(harness.seen(7).await.0, Some(1));
        }
        harness.is_tidy().await;
    }
    assert_eq!(committed, MANY - 1);
}

/// A create as the documentation shows it, with a pause at each step.
async fn insert(
    rows: FakeTable,
    admit: Admit<i64>,
) -> Result<(crate::Admitted<i64>, i64), Failure> {
    let mut transaction = rows.begin();
    tokio::task::yield_now().await;
    let id = transaction.insert();
    tokio::task::yield_now().await;
    let admitted = admit.key(id).await?;
    tokio::task::yield_now().await;
    transaction.commit();
    tokio::task::yield_now().await;
    Ok((admitted, id))
}

#[tokio::test]
async fn case_55_a_caller_of_create_that_goes_away_at_any_point_leaves_a_row_that_is_found() {
    for shared in [false, true] {
        for polls in 0..MANY {
            let harness = Harness::with([]).shared_if(shared).build().await;
            let rows = harness.table.clone();
            let creating = harness.guard.create(|admit| insert(rows, admit));
            let _ = poll_and_drop(polls, creating).await;
            quiet().await;
            let ids = harness.table.ids();
            assert_eq!(ids.len(), usize::from(polls > 0), "{polls} polls");
            for id in ids {
                assert!(!harness.refuses(id), "{polls} polls");
                assert_eq!(harness.seen(id).await.0, Some(1), "{polls} polls");
            }
            assert_eq!(harness.status().counts.writes_unknown, 0);
            assert_eq!(harness.open_writes(), 0, "{polls} polls");
            harness.is_tidy().await;
        }
    }
}

// The same with the caller gone while Begin is held up at the shared cache.
#[tokio::test]
async fn case_55_a_caller_of_create_that_goes_away_during_begin_leaves_a_row_that_is_found() {
    for step in [
        At::BeginOnBackplane,
        At::BeforePutIntent,
        At::AfterPutIntent,
        At::BeforeClearIntent,
        At::AfterClearIntent,
    ] {
        let harness = Harness::with([]).shared().build().await;
        let at = harness.failpoints.hold(step);
        let (guard, rows) = (harness.guard.clone(), harness.table.clone());
        let creating = tokio::spawn(async move { guard.create(|admit| insert(rows, admit)).await });
        at.arrived().await;
        creating.abort();
        quiet().await;
        at.let_all_go();
        until("the write is over", || harness.guard.0.running_writes.borrow().running == 0).await;
        let id = harness.table.ids()[0];
        assert!(!harness.refuses(id));
        assert_eq!(harness.seen(id).await, (Some(1), Tier::Loader), "{step:?}");
        assert_eq!(harness.seen(id).await, (Some(1), Tier::Local), "{step:?}");
        harness.is_tidy().await;
    }
}

#[tokio::test]
async fn the_admission_comes_before_the_commit() {
    let harness = Harness::with([]).build().await;
    let announcing = harness.failpoints.hold(At::BeginOnBackplane);
    let (guard, rows) = (harness.guard.clone(), harness.table.clone());
    let creating = tokio::spawn(async move { guard.create(|admit| insert(rows, admit)).await });
    announcing.arrived().await;
    quiet().await;
    assert!(harness.table.ids().is_empty(), "committed before it was admitted");
    assert!(!harness.refuses(1_000_001));
    announcing.let_all_go();
    let id = within(creating).await.unwrap().unwrap();
    assert_eq!(harness.seen(id).await.0, Some(1));
}

#[tokio::test]
async fn case_55_a_create_that_cannot_admit_does_not_commit() {
    let harness = Harness::with([]).shared().build().await;
    harness.store().faults(super::store::Faults { no_put_intent: true, ..Default::default() });
    let rows = harness.table.clone();
    let failed = within(harness.guard.create(|admit| insert(rows, admit))).await;
    let expected = |failed: &Result<i64, WriteError<Failure>>| {
        matches!(failed, Err(WriteError::Run(Failure::Admit(AdmitError::Store(_)))))
    };
    assert!(expected(&failed), "{failed:?}");
    assert!(harness.table.ids().is_empty());
    assert_eq!(harness.open_writes(), 0);
    harness.is_tidy().await;
}

// Several rows in one create: each has its own Begin and End.
#[tokio::test]
async fn a_create_of_several_rows_admits_each_and_ends_each() {
    let harness = Harness::with([]).shared().build().await;
    let rows = harness.table.clone();
    let created = harness.guard.create(|admit| async move {
        let mut transaction = rows.begin();
        let ids = [transaction.insert(), transaction.insert(), transaction.insert()];
        let mut last = admit.key(ids[0]).await?;
        for id in &ids[1..] {
            last = admit.key(*id).await?;
        }
        transaction.commit();
        Ok::<_, Failure>((last, ids))
    });
    for id in within(created).await.unwrap() {
        assert!(!harness.refuses(id));
        assert_eq!(harness.seen(id).await.0, Some(1));
    }
    assert_eq!(harness.status().counts.writes_ended, 3);
    harness.is_tidy().await;
}

#[tokio::test]
async fn an_admit_that_is_used_after_the_end_is_refused() {
    let harness = Harness::with([]).shared().build().await;
    let kept: Arc<parking_lot::Mutex<Option<Admit<i64>>>> = Arc::default();
    let (keep, rows) = (Arc::clone(&kept), harness.table.clone());
    let created = harness.guard.create(|admit| async move {
        *keep.lock() = Some(admit.clone());
        insert(rows, admit).await
    });
    within(created).await.unwrap();
    let admit = kept.lock().take().unwrap();
    let late = within(admit.key(500)).await;
    assert!(matches!(late, Err(AdmitError::Closed)), "{late:?}");
    assert_eq!(harness.open_writes(), 0);
    harness.is_tidy().await;
}

// The end comes while an admission is on its way: it is refused, and its key is open until W.
#[tokio::test]
async fn an_admission_that_the_end_overtakes_is_refused_and_harmless() {
    let harness = Harness::with([]).shared().build().await;
    let kept: Arc<parking_lot::Mutex<Option<Admit<i64>>>> = Arc::default();
    let (keep, rows) = (Arc::clone(&kept), harness.table.clone());
    let (go, wait) = tokio::sync::oneshot::channel::<()>();
    let (guard, keeping) = (harness.guard.clone(), Arc::clone(&keep));
    let creating = tokio::spawn(async move {
        guard
            .create(|admit| async move {
                *keeping.lock() = Some(admit.clone());
                let _ = wait.await;
                insert(rows, admit).await
            })
            .await
    });
    quiet().await;
    let admit = kept.lock().take().unwrap();
    let with_intent = harness.failpoints.hold_one(At::AfterPutIntent);
    let late = tokio::spawn(async move { admit.key(500).await });
    with_intent.arrived().await;
    go.send(()).unwrap();
    let id = within(creating).await.unwrap().unwrap();
    with_intent.let_all_go();
    let refused = within(late).await.unwrap();
    assert!(matches!(refused, Err(AdmitError::Closed)), "{refused:?}");
    assert_eq!(harness.open_writes(), 1);
    assert_eq!(harness.seen(id).await.0, Some(1));
    harness.pass(WINDOW).await;
    assert_eq!(harness.open_writes(), 0);
    harness.is_tidy().await;
}

#[tokio::test]
async fn a_create_that_is_cut_off_leaves_its_keys_open_until_w() {
    let harness = Harness::with([]).build().await;
    let (guard, rows) = (harness.guard.clone(), harness.table.clone());
    let creating = tokio::spawn(async move {
        guard
            .create(|admit| async move {
                let admitted = admit.key(7).await?;
                // The COMMIT goes out, and no answer comes.
                std::future::pending::<()>().await;
                rows.commit(7);
                Ok::<_, Failure>((admitted, ()))
            })
            .await
    });
    harness.pass(super::harness::RUN_FOR).await;
    let result = within(creating).await.unwrap();
    assert!(matches!(result, Err(WriteError::TimedOut { .. })), "{result:?}");
    assert_eq!(harness.open_writes(), 1);
    assert_eq!(harness.seen(7).await, (None, Tier::Loader));
    harness.table.commit(7);
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    harness.is_tidy().await;
    assert_eq!(harness.seen(7).await.0, Some(1));
}

// Case 32, a write that panics: the next one goes through at once.
#[tokio::test]
async fn case_32_after_a_write_that_panicked_others_of_the_key_go_on() {
    let harness = Harness::with([7]).shared().build().await;
    Writer::begin(&harness, 7).await.panic().await;
    harness.write(7).await.unwrap();
    assert_eq!(harness.seen(7).await.0, Some(2));
    harness.is_tidy().await;
}

#[tokio::test]
async fn case_32_a_run_that_panics_before_its_first_await_is_no_hang() {
    let harness = Harness::with([7]).build().await;
    let run = async { panic!("the test says so") };
    let lost: Result<(), WriteError<Failure>> = within(harness.guard.write(7, run)).await;
    assert!(matches!(lost, Err(WriteError::Panicked)));
    harness.is_tidy().await;
}
