//! Tests of a load within its limits: time-out, counts, panics.

use std::error::Error as _;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;

use super::super::{Bulkhead, BulkheadLimits, LimitedLoader, Share, erase, from_fn};
use crate::clock::{Clock, ManualTime};
use crate::error::{BoxError, ReadError};
use crate::ports::Loader;
use crate::telemetry::LoaderCounts;

const TIMEOUT: Duration = Duration::from_secs(2);
const PERMITS: usize = 2;

struct Fixture {
    limited: LimitedLoader<i64, String>,
    counts: Arc<LoaderCounts>,
    time: ManualTime,
}

impl Fixture {
    fn new(loader: impl Loader<i64, String>) -> Self {
        let (clock, time) = Clock::manual();
        let limits = BulkheadLimits {
            permits: PERMITS,
            unseen: 1,
            queue: Duration::from_millis(250),
            waiters: 1_000,
        };
        let counts = Arc::new(LoaderCounts::default());
        let bulkhead = Bulkhead::new(limits, clock.clone());
        let counted = Arc::clone(&counts);
        Self {
            limited: LimitedLoader::new(
                erase(loader),
                bulkhead,
                TIMEOUT,
                clock,
                counted,
                "test".into(),
            ),
            counts,
            time,
        }
    }

    async fn load(&self, id: i64) -> Result<Option<String>, ReadError> {
        self.limited.load(&id, Share::Full, || {}).await
    }

    /// (loads, found, absent, errors, time-outs, shed, panics)
    fn counted(&self) -> (u64, u64, u64, u64, u64, u64, u64) {
        let counts = &self.counts;
        let ended =
            counts.found.get() + counts.absent.get() + counts.errors.get() + counts.timeouts.get();
        assert_eq!(counts.loads.get(), ended, "every load has one end");
        (
            counts.loads.get(),
            counts.found.get(),
            counts.absent.get(),
            counts.errors.get(),
            counts.timeouts.get(),
            counts.shed.get(),
            counts.panics.get(),
        )
    }

    /// Fails if a permit was not released.
    async fn all_permits_are_free(&self) {
        // Tokio makes a task yield that has just polled many others.
        tokio::task::yield_now().await;
        for share in [Share::Unseen, Share::Full] {
            let free = self.limited.bulkhead.enter(share).now_or_never();
            assert!(free.is_some_and(|permit| permit.is_ok()), "{share:?}");
        }
        let permits = (0..PERMITS).map(|_| self.limited.bulkhead.enter(Share::Full));
        assert!(join_all(permits).now_or_never().is_some());
    }
}

#[derive(Clone, Copy)]
struct PanicsAtOnce;

impl Loader<i64, String> for PanicsAtOnce {
    type Error = io::Error;

    fn load(&self, id: &i64) -> impl Future<Output = Result<Option<String>, io::Error>> + Send {
        if *id == 7 {
            panic!("before the first await");
        }
        async { Ok(Some("row".to_owned())) }
    }
}

#[tokio::test]
async fn case_27_rows_absences_and_errors_are_three_results_with_counts_of_their_own() {
    let fixture = Fixture::new(from_fn(async |id: i64| match id {
        1 => Ok(Some("one".to_owned())),
        2 => Ok(None),
        _ => Err(io::Error::other("the database is away")),
    }));
    assert_eq!(fixture.load(1).await.unwrap().as_deref(), Some("one"));
    assert_eq!(fixture.load(2).await.unwrap(), None);
    let error = fixture.load(3).await.unwrap_err();
    assert!(matches!(error, ReadError::Load(_)) && error.is_temporary());
    let source = error.source().unwrap().to_string();
    assert_eq!(source, "the database is away");
    assert_eq!(fixture.counted(), (3, 1, 1, 1, 0, 0, 0));
    fixture.all_permits_are_free().await;
}

#[tokio::test]
async fn case_27_a_load_that_takes_too_long_is_an_error() {
    let fixture = Fixture::new(from_fn(async |_: i64| {
        std::future::pending::<Result<Option<String>, io::Error>>().await
    }));
    let mut load = Box::pin(fixture.load(1));
    assert!((&mut load).now_or_never().is_none());
    fixture.time.advance(TIMEOUT - Duration::from_millis(1));
    assert!((&mut load).now_or_never().is_none());
    fixture.time.advance(Duration::from_millis(1));
    let error = load.await.unwrap_err();
    assert!(matches!(error, ReadError::LoadTimedOut { after } if after == TIMEOUT));
    assert!(error.is_temporary());
    assert_eq!(fixture.counted(), (1, 0, 0, 0, 1, 0, 0));
    fixture.all_permits_are_free().await;
}

#[tokio::test]
async fn the_wait_for_a_permit_is_not_part_of_the_time_out() {
    let fixture = Fixture::new(from_fn(async |_: i64| {
        std::future::pending::<Result<Option<String>, io::Error>>().await
    }));
    let mut first = Box::pin(join_all([fixture.load(1), fixture.load(2)]));
    assert!((&mut first).now_or_never().is_none());
    fixture.time.advance(TIMEOUT - Duration::from_millis(200));
    let mut waiting = Box::pin(fixture.load(3));
    assert!((&mut waiting).now_or_never().is_none());
    fixture.time.advance(Duration::from_millis(200));
    assert!(first.await.iter().all(Result::is_err));
    assert!((&mut waiting).now_or_never().is_none());
    fixture.time.advance(TIMEOUT - Duration::from_millis(1));
    assert!((&mut waiting).now_or_never().is_none());
    fixture.time.advance(Duration::from_millis(1));
    assert!(waiting.await.is_err());
    assert_eq!(fixture.counted(), (3, 0, 0, 0, 3, 0, 0));
}

#[tokio::test]
async fn case_32_a_panic_before_the_first_await_costs_that_load_alone() {
    let fixture = Fixture::new(PanicsAtOnce);
    for _ in 0..5 {
        let error = fixture.load(7).await.unwrap_err();
        assert!(matches!(error, ReadError::LoadPanicked) && !error.is_temporary());
        assert_eq!(fixture.load(8).await.unwrap().as_deref(), Some("row"));
    }
    assert_eq!(fixture.counted(), (10, 5, 0, 5, 0, 0, 5));
    fixture.all_permits_are_free().await;
}

#[tokio::test]
async fn case_32_a_panic_within_a_load_costs_that_load_alone() {
    let fixture = Fixture::new(from_fn(async |id: i64| {
        tokio::task::yield_now().await;
        if id == 7 {
            panic!("after the first await");
        }
        Ok::<_, io::Error>(Some("row".to_owned()))
    }));
    for _ in 0..5 {
        let error = fixture.load(7).await.unwrap_err();
        assert!(matches!(error, ReadError::LoadPanicked));
        assert_eq!(fixture.load(8).await.unwrap().as_deref(), Some("row"));
    }
    assert_eq!(fixture.counted(), (10, 5, 0, 5, 0, 0, 5));
    fixture.all_permits_are_free().await;
}

#[tokio::test]
async fn a_load_without_a_permit_is_shed_and_never_begins() {
    let begun = Arc::new(AtomicBool::new(false));
    let fixture = Fixture::new(from_fn(async |_: i64| {
        std::future::pending::<Result<Option<String>, io::Error>>().await
    }));
    let mut first = Box::pin(join_all([fixture.load(1), fixture.load(2)]));
    assert!((&mut first).now_or_never().is_none());
    let starting = || begun.store(true, Ordering::Relaxed);
    let mut shed = Box::pin(fixture.limited.load(&3, Share::Full, starting));
    assert!((&mut shed).now_or_never().is_none());
    fixture.time.advance(Duration::from_millis(250));
    let error = shed.await.unwrap_err();
    assert!(matches!(error, ReadError::Shed { .. }) && error.is_temporary());
    assert!(!begun.load(Ordering::Relaxed));
    assert_eq!(fixture.counts.loads.get(), 2);
    assert_eq!(fixture.counts.shed.get(), 1);
}

#[tokio::test]
async fn starting_is_called_once_before_the_database_is_asked() {
    let started = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&started);
    let fixture = Fixture::new(from_fn(move |_: i64| {
        let seen = seen.load(Ordering::SeqCst);
        async move { Ok::<_, io::Error>(seen.then(|| "started".to_owned())) }
    }));
    let starting = || assert!(!started.swap(true, Ordering::SeqCst));
    let row = fixture.limited.load(&1, Share::Unseen, starting).await;
    assert_eq!(row.unwrap().as_deref(), Some("started"));
}

#[tokio::test]
async fn dropped_loads_release_their_permits() {
    let fixture = Fixture::new(from_fn(async |_: i64| {
        std::future::pending::<Result<Option<String>, io::Error>>().await
    }));
    for _ in 0..10 {
        let mut loads = Box::pin(join_all((0..PERMITS as i64).map(|id| fixture.load(id))));
        assert!((&mut loads).now_or_never().is_none());
        drop(loads);
        fixture.all_permits_are_free().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_are_exact_under_concurrent_loads() {
    let fixture = Arc::new(Fixture::new(from_fn(async |id: i64| {
        tokio::task::yield_now().await;
        match id % 4 {
            0 => Ok(Some("row".to_owned())),
            1 => Ok(None),
            2 => Err(BoxError::from("no")),
            _ => panic!("no"),
        }
    })));
    let loads = (0..400).map(|id| {
        let fixture = Arc::clone(&fixture);
        tokio::spawn(async move { fixture.load(id).await })
    });
    for (id, loaded) in join_all(loads).await.into_iter().enumerate() {
        match (id % 4, loaded.unwrap()) {
            (0, Ok(Some(_))) | (1, Ok(None)) => {}
            (2, Err(ReadError::Load(_))) | (3, Err(ReadError::LoadPanicked)) => {}
            (_, other) => panic!("{other:?}"),
        }
    }
    assert_eq!(fixture.counted(), (400, 100, 100, 200, 0, 0, 100));
    fixture.all_permits_are_free().await;
}
