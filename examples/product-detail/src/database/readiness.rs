//! The readiness of the table, with a source of ids that waits for it.

use std::sync::Arc;
use std::time::Duration;

use bloomgate::ports::{KeySink, Quiesced, ScanCompleted, ScanFrom};
use bloomgate::{Source, SourceError};
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::{Database, PrepareError, error_chain};

/// Between two attempts to prepare the database.
const TRY_EVERY: Duration = Duration::from_secs(1);
/// After this long a waiting source says why it waits.
const WAIT: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
enum State {
    Trying,
    Failed(Arc<str>),
    Ready,
}

/// The state of the preparation, to be read.
#[derive(Clone, Debug)]
pub(crate) struct Readiness(watch::Receiver<State>);

/// The state of the preparation, to be set.
#[derive(Debug)]
pub(crate) struct ReadinessReporter(watch::Sender<State>);

impl Readiness {
    pub(crate) fn new() -> (ReadinessReporter, Self) {
        let (sender, receiver) = watch::channel(State::Trying);
        (ReadinessReporter(sender), Self(receiver))
    }

    /// The reason that the table can't be used yet; `None` if it can.
    pub(crate) fn unready_reason(&self) -> Option<String> {
        match &*self.0.borrow() {
            State::Trying => Some("the database is being prepared".to_owned()),
            State::Failed(reason) => Some(reason.to_string()),
            State::Ready => None,
        }
    }

    /// Waits until the database is prepared or the first attempt has failed.
    pub(crate) async fn first_attempt(&self) {
        let mut state = self.0.clone();
        // If the task is gone, it won't get any further.
        let _ = state.wait_for(|state| !matches!(state, State::Trying)).await;
    }

    async fn until_ready(&self) -> Result<(), SourceError> {
        let mut state = self.0.clone();
        let ready = state.wait_for(|state| matches!(state, State::Ready));
        let ready = tokio::time::timeout(WAIT, ready).await;
        if matches!(ready, Ok(Ok(_))) {
            return Ok(());
        }
        drop(ready);
        let reason = self.unready_reason().unwrap_or_default();
        Err(SourceError::new(format!("the table is not ready: {reason}")))
    }
}

impl ReadinessReporter {
    /// Prepares the database, however often that must be tried.
    pub(crate) async fn keep_trying(self, database: Database, seed: u64) {
        loop {
            match database.prepare(seed).await {
                Ok(()) => return self.ready(),
                Err(error) => self.failed(&error),
            }
            tokio::time::sleep(TRY_EVERY).await;
        }
    }

    /// The table is there.
    pub(crate) fn ready(self) {
        self.0.send_replace(State::Ready);
    }

    fn failed(&self, error: &PrepareError) {
        let reason = error_chain(error);
        let is_new = self.0.send_if_modified(|state| {
            let is_new = !matches!(state, State::Failed(before) if **before == *reason);
            if is_new {
                *state = State::Failed(reason.as_str().into());
            }
            is_new
        });
        if is_new {
            tracing::warn!("{reason}; trying again");
        }
    }
}

/// A source that has no ids to give until the table is migrated and seeded: an empty or missing
/// table must not pass for a complete one.
#[derive(Debug)]
pub(crate) struct PreparedSource<S> {
    source: S,
    readiness: Readiness,
}

impl<S> PreparedSource<S> {
    pub(crate) fn new(source: S, readiness: Readiness) -> Self {
        Self { source, readiness }
    }
}

impl<S: Source> Source for PreparedSource<S> {
    type Key = S::Key;

    fn describe(&self) -> String {
        self.source.describe()
    }

    fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>> {
        Box::pin(async {
            self.readiness.until_ready().await?;
            self.source.count().await
        })
    }

    fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>> {
        Box::pin(async {
            self.readiness.until_ready().await?;
            self.source.quiesce().await
        })
    }

    fn scan<'a>(
        &'a self,
        from: ScanFrom,
        sink: &'a dyn KeySink<S::Key>,
    ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>> {
        Box::pin(async {
            self.readiness.until_ready().await?;
            self.source.scan(from, sink).await
        })
    }
}
