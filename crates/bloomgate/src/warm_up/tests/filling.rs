//! Filling from a source that misbehaves, on a clock that moves by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::super::{Backoff, Keys, Progress, fill, quiesce};
use crate::clock::{Clock, ManualTime};
use crate::error::SourceError;
use crate::key::KeyBytes;
use crate::ports::{Cursor, Quiesced, Scan, ScanCompleted, ScanFrom, Source};

const KEYS: u64 = 1_000;
const PAGE: u64 = 100;

/// How a scan goes wrong.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// An error after so many keys.
    FailsAfter(u64),
    /// Silence after so many keys.
    StallsAfter(u64),
    /// An error after all keys.
    FailsAtTheEnd,
    /// To the end.
    Completes,
}

/// Hands over 0 to [`KEYS`] in pages, each scan with the next fate.
#[derive(Debug)]
struct Fragile {
    fates: Mutex<Vec<Fate>>,
    /// Where each scan began.
    began: Mutex<Vec<u64>>,
    quiescing: Mutex<Vec<Result<Quiesced, ()>>>,
    asked_to_settle: AtomicU64,
    /// When each scan began.
    clock: Clock,
    at: Mutex<Vec<Duration>>,
    origin: crate::clock::Moment,
}

impl Fragile {
    fn new(clock: &Clock, fates: &[Fate]) -> Self {
        Self {
            fates: Mutex::new(fates.iter().rev().copied().collect()),
            began: Mutex::default(),
            quiescing: Mutex::default(),
            asked_to_settle: AtomicU64::new(0),
            origin: clock.now(),
            clock: clock.clone(),
            at: Mutex::default(),
        }
    }
}

impl Source for Fragile {
    fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>> {
        Box::pin(async { Ok(KEYS) })
    }

    fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>> {
        Box::pin(async {
            self.asked_to_settle.fetch_add(1, Ordering::Relaxed);
            let answer = self.quiescing.lock().pop();
            match answer {
                Some(Ok(quiesced)) => Ok(quiesced),
                Some(Err(())) => Err(SourceError::new("locked")),
                None => std::future::pending().await,
            }
        })
    }

    fn scan<'a>(
        &'a self,
        from: ScanFrom,
        into: &'a mut dyn Scan,
    ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>> {
        let first = match from {
            ScanFrom::Start => 0,
            ScanFrom::After(cursor) => *cursor.position::<u64>().unwrap(),
        };
        self.began.lock().push(first);
        self.at.lock().push(self.clock.now().since(self.origin));
        let fate = self.fates.lock().pop().unwrap_or(Fate::Completes);
        Box::pin(async move {
            for (handed_over, id) in (first..KEYS).enumerate() {
                match fate {
                    Fate::FailsAfter(keys) if handed_over as u64 == keys => {
                        return Err(SourceError::new("the server hung up"));
                    }
                    Fate::StallsAfter(keys) if handed_over as u64 == keys => {
                        std::future::pending::<()>().await;
                    }
                    _ => {}
                }
                into.key(&id.to_le_bytes());
                if (id + 1) % PAGE == 0 {
                    into.checkpoint(Cursor::new(id + 1));
                    tokio::task::yield_now().await;
                }
            }
            match fate {
                Fate::FailsAtTheEnd => Err(SourceError::new("the server hung up")),
                _ => Ok(ScanCompleted::explicit_end()),
            }
        })
    }
}

/// A fill in a task.
struct Filling {
    task: tokio::task::JoinHandle<()>,
    source: Arc<Fragile>,
    seen: Arc<Mutex<Vec<bool>>>,
    progress: Arc<Progress>,
    time: ManualTime,
}

impl Filling {
    fn start(fates: &[Fate]) -> Self {
        let (clock, time) = Clock::manual();
        let source = Arc::new(Fragile::new(&clock, fates));
        let seen = Arc::new(Mutex::new(vec![false; KEYS as usize]));
        let progress = Arc::new(Progress::default());
        let (from, into, shown) = (Arc::clone(&source), Arc::clone(&seen), Arc::clone(&progress));
        let task = tokio::spawn(async move {
            let insert = |key: &[u8]| {
                let id = u64::from_le_bytes(key.try_into().unwrap());
                into.lock()[id as usize] = true;
            };
            let _end = fill(&*from, insert, &shown, &clock).await;
        });
        Self { task, source, seen, progress, time }
    }

    /// Lets it go as far as it gets without time.
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

    fn began(&self) -> Vec<u64> {
        self.source.began.lock().clone()
    }
}

#[tokio::test]
async fn case_35_a_scan_that_breaks_off_is_resumed_where_it_was_and_never_taken_for_complete() {
    let filling =
        Filling::start(&[Fate::FailsAfter(650), Fate::FailsAfter(0), Fate::FailsAfter(250)]);
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
    assert_eq!(filling.began(), [0, 600, 600, 800]);
    assert_eq!(filling.progress.last_error(), None);
    // With the 50 twice that were handed over twice, and 50 more after that.
    assert_eq!(filling.progress.keys(), KEYS + 50 + 50);
}

#[tokio::test]
async fn case_35_all_keys_without_an_explicit_end_are_no_end() {
    let filling = Filling::start(&[Fate::FailsAtTheEnd; 20]);
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
    let mut fates = vec![Fate::FailsAfter(0); 8];
    fates.push(Fate::FailsAfter(10));
    fates.push(Fate::FailsAfter(0));
    let filling = Filling::start(&fates);
    for _ in 0..400 {
        filling.pass(Duration::from_millis(100)).await;
    }
    assert!(filling.task.is_finished());
    let at = filling.source.at.lock().clone();
    let waits: Vec<u128> = at.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
    assert_eq!(waits, [200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000, 200, 400]);
}

#[tokio::test]
async fn case_35_a_scan_that_stalls_is_dropped_and_resumed() {
    let filling = Filling::start(&[Fate::StallsAfter(450), Fate::StallsAfter(0)]);
    filling.rest().await;
    assert_eq!(filling.seen(), 450);
    filling.pass(Duration::from_millis(29_999)).await;
    assert_eq!(filling.began(), [0]);
    // The watchdog looks each half minute whether anything moved since.
    for _ in 0..4 {
        filling.pass(Duration::from_secs(30)).await;
    }
    let error = filling.progress.last_error();
    assert!(filling.began().len() >= 2, "{error:?}");
    for _ in 0..10 {
        filling.pass(Duration::from_secs(30)).await;
    }
    assert!(filling.task.is_finished());
    assert_eq!(filling.began(), [0, 400, 400]);
    assert_eq!(filling.seen(), KEYS as usize);
}

#[tokio::test]
async fn a_slow_scan_that_moves_is_left_alone() {
    /// One key every 29 s.
    #[derive(Debug)]
    struct Slow(Clock, AtomicBool);

    impl Source for Slow {
        fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>> {
            Box::pin(async { Ok(10) })
        }

        fn scan<'a>(
            &'a self,
            _from: ScanFrom,
            into: &'a mut dyn Scan,
        ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>> {
            assert!(!self.1.swap(true, Ordering::Relaxed), "begun anew");
            Box::pin(async move {
                for id in 0..10_u64 {
                    self.0.sleep(Duration::from_secs(29)).await;
                    into.key(&id.to_le_bytes());
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
async fn keys_in_memory_are_handed_over() {
    let (clock, _time) = Clock::manual();
    let keys = Keys::new([3_i64, -1, 3]);
    let mut seen = Vec::new();
    let progress = Progress::default();
    let insert = |key: &[u8]| seen.push(KeyBytes::of(&key.to_vec()));
    let _end = fill(&keys, insert, &progress, &clock).await;
    assert_eq!(seen, [3_i64, -1, 3].map(|id| KeyBytes::of(&id)));
    assert_eq!(progress.keys(), 3);
    assert_eq!(keys.quiesce().await.unwrap(), Quiesced::Drained);
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

const W: Duration = Duration::from_secs(30);

/// Settling in a task, with these answers of the source.
struct Settling {
    task: tokio::task::JoinHandle<()>,
    source: Arc<Fragile>,
    time: ManualTime,
}

impl Settling {
    fn start(answers: &[Result<Quiesced, ()>]) -> Self {
        let (clock, time) = Clock::manual();
        let source = Arc::new(Fragile::new(&clock, &[]));
        source.quiescing.lock().extend(answers.iter().rev().copied());
        let asked = Arc::clone(&source);
        let task = tokio::spawn(async move {
            let started = clock.now();
            quiesce(&*asked, started, W, &Progress::default(), &clock).await;
        });
        Self { task, source, time }
    }

    async fn pass(&self, time: Duration) -> bool {
        for step in [Duration::ZERO, time] {
            self.time.advance(step);
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        }
        self.task.is_finished()
    }
}

#[tokio::test]
async fn a_database_that_can_tell_ends_the_wait() {
    let quiescing = Settling::start(&[Ok(Quiesced::Drained)]);
    assert!(quiescing.pass(Duration::ZERO).await);
}

#[tokio::test]
async fn without_an_answer_the_write_window_is_waited_out() {
    for answers in [&[][..], &[Ok(Quiesced::Unknown)]] {
        let quiescing = Settling::start(answers);
        assert!(!quiescing.pass(W - Duration::from_millis(1)).await);
        assert!(quiescing.pass(Duration::from_millis(1)).await);
    }
}

#[tokio::test]
async fn an_error_is_no_answer_and_the_question_is_put_again() {
    let quiescing = Settling::start(&[Err(()), Err(()), Ok(Quiesced::Drained)]);
    assert!(!quiescing.pass(Duration::from_millis(200)).await);
    assert_eq!(quiescing.source.asked_to_settle.load(Ordering::Relaxed), 2);
    assert!(quiescing.pass(Duration::from_millis(400)).await);
    let quiescing = Settling::start(&[Err(()); 100]);
    for _ in 0..29 {
        assert!(!quiescing.pass(Duration::from_secs(1)).await);
    }
    assert!(quiescing.pass(Duration::from_secs(1)).await);
}
