//! Waiting for the end of earlier writes, on a clock that moves by hand.

use std::sync::Arc;
use std::time::Duration;

use super::super::{Progress, quiesce};
use super::scripted_source::ScriptedSource;
use crate::clock::{Clock, ManualTime};
use crate::ports::Quiesced;

const W: Duration = Duration::from_secs(30);

/// A wait for earlier writes in a task, with these answers of the source.
struct Quiescing {
    task: tokio::task::JoinHandle<()>,
    source: Arc<ScriptedSource>,
    time: ManualTime,
}

impl Quiescing {
    fn start(answers: &[Result<Quiesced, ()>]) -> Self {
        let (clock, time) = Clock::manual();
        let source = ScriptedSource::new(&clock, &[]).with_quiesce_answers(answers);
        let source = Arc::new(source);
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
async fn quiescing_ends_when_the_database_says_that_its_writes_have_ended() {
    let quiescing = Quiescing::start(&[Ok(Quiesced::Drained)]);
    assert!(quiescing.pass(Duration::ZERO).await);
}

#[tokio::test]
async fn quiescing_without_an_answer_lasts_until_the_write_window_has_passed() {
    for answers in [&[][..], &[Ok(Quiesced::Unknown)]] {
        let quiescing = Quiescing::start(answers);
        assert!(!quiescing.pass(W - Duration::from_millis(1)).await);
        assert!(quiescing.pass(Duration::from_millis(1)).await);
    }
}

#[tokio::test]
async fn quiescing_asks_again_after_an_error_until_the_write_window_has_passed() {
    let quiescing = Quiescing::start(&[Err(()), Err(()), Ok(Quiesced::Drained)]);
    assert!(!quiescing.pass(Duration::from_millis(200)).await);
    assert_eq!(quiescing.source.quiesce_calls(), 2);
    assert!(quiescing.pass(Duration::from_millis(400)).await);
    let quiescing = Quiescing::start(&[Err(()); 100]);
    for _ in 0..29 {
        assert!(!quiescing.pass(Duration::from_secs(1)).await);
    }
    assert!(quiescing.pass(Duration::from_secs(1)).await);
}
