//! Filling from a source that fails, on a clock that moves by hand.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::super::{Backoff, Keys, Progress, fill};
use super::scripted_source::{KEYS, Outcome, ScriptedSource};
use crate::clock::{Clock, ManualTime};
use crate::error::SourceError;
use crate::ports::{KeySink, Quiesced, ScanCompleted, ScanFrom, Source};

/// A fill in a task.
struct Filling {
    task: tokio::task::JoinHandle<()>,
    source: Arc<ScriptedSource>,
    seen: Arc<Mutex<Vec<bool>>>,
    progress: Arc<Progress>,
    time: ManualTime,
}

impl Filling {
    fn start(outcomes: &[Outcome]) -> Self {
        let (clock, time) = Clock::manual();
        let source = Arc::new(ScriptedSource::new(&clock, outcomes));
        let seen = Arc::new(Mutex::new(vec![false; KEYS as usize]));
        let progress = Arc::new(Progress::default());
        let (scanned, into, shown) =
            (Arc::clone(&source), Arc::clone(&seen), Arc::clone(&progress));
        let task = tokio::spawn(async move {
            let insert = |keys: &[u64]| {
                for id in keys {
                    into.lock()[*id as usize] = true;
                }
            };
            let _end = fill(&*scanned, insert, &shown, &clock).await;
        });
        Self { task, source, seen, progress, time }
    }

    /// Lets it run as far as it gets without time.
    async fn rest(&self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    async fn pass(&self, time: Duration) {
        self.rest().await;
        self.time.advance(time);
        self.rest().await;
    }

    fn seen(&self) -> usize {
        self.seen.lock().iter().filter(|seen| **seen).count()
    }
}

#[tokio::test]
async fn case_35_a_scan_that_breaks_off_is_resumed_where_it_was_and_never_taken_for_complete() {
    let filling = Filling::start(&[
        Outcome::FailsAfter(650),
        Outcome::FailsAfter(0),
        Outcome::FailsAfter(250),
    ]);
    filling.rest().await;
    assert!(!filling.task.is_finished());
    assert_eq!(filling.seen(), 650);
    let error = filling.progress.last_error().unwrap();
    assert!(error.contains("the server hung up"), "{error}");
    for _ in 0..20 {
        filling.pass(Duration::from_millis(100)).await;
    }
    assert!(filling.task.is_finished());
    assert_eq!(filling.seen(), KEYS as usize);
    assert_eq!(filling.source.scan_starts(), [0, 600, 600, 800]);
    assert_eq!(filling.progress.last_error(), None);
    // 600 to 649 were handed over twice, then 800 to 849.
    assert_eq!(filling.progress.keys(), KEYS + 50 + 50);
}

#[tokio::test]
async fn case_35_all_keys_without_an_explicit_end_are_no_end() {
    let filling = Filling::start(&[Outcome::FailsAtTheEnd; 20]);
    for _ in 0..15 {
        filling.pass(Duration::from_secs(5)).await;
    }
    assert_eq!(filling.seen(), KEYS as usize);
    assert!(!filling.task.is_finished());
    assert!(filling.progress.last_error().is_some());
    for _ in 0..10 {
        filling.pass(Duration::from_secs(5)).await;
    }
    assert!(filling.task.is_finished());
}

#[tokio::test]
async fn waits_between_attempts_double_up_to_five_seconds_and_begin_anew_after_progress() {
    let mut outcomes = vec![Outcome::FailsAfter(0); 8];
    outcomes.push(Outcome::FailsAfter(10));
    outcomes.push(Outcome::FailsAfter(0));
    let filling = Filling::start(&outcomes);
    for _ in 0..400 {
        filling.pass(Duration::from_millis(100)).await;
    }
    assert!(filling.task.is_finished());
    let waits = filling.source.waits_between_scans();
    assert_eq!(waits, [200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000, 200, 400]);
}

#[tokio::test]
async fn case_35_a_scan_that_stalls_is_dropped_and_resumed() {
    let filling = Filling::start(&[Outcome::StallsAfter(450), Outcome::StallsAfter(0)]);
    filling.rest().await;
    assert_eq!(filling.seen(), 450);
    filling.pass(Duration::from_millis(29_999)).await;
    assert_eq!(filling.source.scan_starts(), [0]);
    // The watchdog looks each half minute whether anything moved since.
    for _ in 0..4 {
        filling.pass(Duration::from_secs(30)).await;
    }
    let error = filling.progress.last_error();
    assert!(filling.source.scan_starts().len() >= 2, "{error:?}");
    for _ in 0..10 {
        filling.pass(Duration::from_secs(30)).await;
    }
    assert!(filling.task.is_finished());
    assert_eq!(filling.source.scan_starts(), [0, 400, 400]);
    assert_eq!(filling.seen(), KEYS as usize);
}

#[tokio::test]
async fn a_slow_scan_that_moves_is_left_alone() {
    /// One key every 29 s.
    #[derive(Debug)]
    struct Slow(Clock, AtomicBool);

    impl Source for Slow {
        type Key = u64;

        fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>> {
            Box::pin(async { Ok(10) })
        }

        fn scan<'a>(
            &'a self,
            _from: ScanFrom,
            sink: &'a dyn KeySink<u64>,
        ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>> {
            assert!(!self.1.swap(true, Ordering::Relaxed), "it was begun again");
            Box::pin(async move {
                for id in 0..10_u64 {
                    self.0.sleep(Duration::from_secs(29)).await;
                    sink.insert(&[id]);
                }
                Ok(ScanCompleted::explicit_end())
            })
        }
    }

    let (clock, time) = Clock::manual();
    let task = tokio::spawn(async move {
        let slow = Slow(clock.clone(), AtomicBool::new(false));
        let _end = fill(&slow, |_| {}, &Progress::default(), &clock).await;
    });
    for _ in 0..300 {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        time.advance(Duration::from_secs(1));
    }
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(task.is_finished());
}

#[tokio::test]
async fn a_cursor_that_does_not_fit_is_an_error_and_the_scan_begins_at_the_start() {
    let filling = Filling::start(&[Outcome::ForeignCheckpointAfter(250)]);
    filling.rest().await;
    filling.pass(Duration::from_millis(200)).await;
    let error = filling.progress.last_error().unwrap();
    assert!(error.contains("the cursor holds another source's position"), "{error}");
    assert!(!filling.task.is_finished());
    filling.pass(Duration::from_millis(400)).await;
    assert!(filling.task.is_finished());
    assert_eq!(filling.source.scan_starts(), [0, 0]);
    assert_eq!(filling.seen(), KEYS as usize);
    assert_eq!(filling.progress.keys(), 250 + KEYS);
}

#[tokio::test]
async fn ranges_feed_one_filling_at_once() {
    /// Four ranges in four threads, which all begin before one of them ends.
    #[derive(Debug)]
    struct Ranges;

    impl Source for Ranges {
        type Key = u64;

        fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>> {
            Box::pin(async { Ok(4_000) })
        }

        fn scan<'a>(
            &'a self,
            _from: ScanFrom,
            sink: &'a dyn KeySink<u64>,
        ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>> {
            let all_began = std::sync::Barrier::new(4);
            std::thread::scope(|threads| {
                for range in 0..4 {
                    let all_began = &all_began;
                    threads.spawn(move || {
                        sink.insert(&[range * 1_000]);
                        all_began.wait();
                        for id in range * 1_000 + 1..(range + 1) * 1_000 {
                            sink.insert(&[id]);
                        }
                    });
                }
            });
            Box::pin(async { Ok(ScanCompleted::explicit_end()) })
        }
    }

    let (clock, _time) = Clock::manual();
    let (seen, progress) = (Mutex::new(BTreeSet::new()), Progress::default());
    let insert = |keys: &[u64]| seen.lock().extend(keys.iter().copied());
    let _end = fill(&Ranges, insert, &progress, &clock).await;
    assert!(seen.into_inner().into_iter().eq(0..4_000));
    assert_eq!(progress.keys(), 4_000);
}

#[tokio::test]
async fn keys_in_memory_are_handed_over() {
    let (clock, _time) = Clock::manual();
    let keys = Keys::new([3_i64, -1, 3]);
    assert_eq!(keys.count().await.unwrap(), 3);
    let (seen, progress) = (Mutex::new(Vec::new()), Progress::default());
    let insert = |keys: &[i64]| seen.lock().extend_from_slice(keys);
    let _end = fill(&keys, insert, &progress, &clock).await;
    assert_eq!(seen.into_inner(), [3, -1, 3]);
    assert_eq!(progress.keys(), 3);
    assert_eq!(keys.quiesce().await.unwrap(), Quiesced::Drained);
    assert_eq!(format!("{keys:?}"), "Keys(3 keys)");
}

#[tokio::test]
async fn back_off_is_on_the_injected_clock() {
    let (clock, time) = Clock::manual();
    let mut backoff = Backoff::new(clock);
    let mut waiting = Box::pin(backoff.wait());
    assert!((&mut waiting).now_or_never().is_none());
    time.advance(Duration::from_millis(200));
    assert!(waiting.now_or_never().is_some());
}
