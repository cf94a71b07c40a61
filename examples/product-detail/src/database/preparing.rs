//! Whether the table is there to be used, and a source of ids that waits for it.

use std::sync::Arc;
use std::time::Duration;

use bloomgate::ports::{Quiesced, Scan, ScanCompleted, ScanFrom};
use bloomgate::{Source, SourceError};
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::{Database, PrepareError};

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

/// Follows how the preparation is going.
#[derive(Clone, Debug)]
pub(crate) struct Preparing(watch::Receiver<State>);

/// Tells how it is going.
#[derive(Debug)]
pub(crate) struct Announce(watch::Sender<State>);

impl Preparing {
    pub(crate) fn new() -> (Announce, Self) {
        let (sender, receiver) = watch::channel(State::Trying);
        (Announce(sender), Self(receiver))
    }

    /// OpenReason the table can't be used yet; `None` if it can.
    pub(crate) fn why_not(&self) -> Option<String> {
        match &*self.0.borrow() {
            State::Trying => Some("the database is being prepared".to_owned()),
            State::Failed(why) => Some(why.to_string()),
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
        let why = self.why_not().unwrap_or_default();
        Err(SourceError::new(format!("the table is not ready: {why}")))
    }
}

impl Announce {
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
        let why = told(error);
        let news = self.0.send_if_modified(|state| {
            let news = !matches!(state, State::Failed(before) if **before == *why);
            if news {
                *state = State::Failed(why.as_str().into());
            }
            news
        });
        if news {
            tracing::warn!("{why}; trying again");
        }
    }
}

/// An error with what is below it, in one line.
pub(crate) fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(error) = below {
        let more = error.to_string();
        // Many libraries repeat the error below in their own message.
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        below = error.source();
    }
    text.replace('\n', " ")
}

/// A source that has no ids to give until the table is migrated and seeded: an empty or missing
/// table must not pass for a complete one.
#[derive(Debug)]
pub(crate) struct WhenPrepared<S> {
    source: S,
    preparing: Preparing,
}

impl<S> WhenPrepared<S> {
    pub(crate) fn new(source: S, preparing: Preparing) -> Self {
        Self { source, preparing }
    }
}

impl<S: Source> Source for WhenPrepared<S> {
    fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>> {
        Box::pin(async {
            self.preparing.until_ready().await?;
            self.source.count().await
        })
    }

    fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>> {
        Box::pin(async {
            self.preparing.until_ready().await?;
            self.source.quiesce().await
        })
    }

    fn scan<'a>(
        &'a self,
        from: ScanFrom,
        into: &'a mut dyn Scan,
    ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>> {
        Box::pin(async {
            self.preparing.until_ready().await?;
            self.source.scan(from, into).await
        })
    }
}
