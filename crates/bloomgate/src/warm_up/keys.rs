//! A source that is a list of keys in memory.

use std::fmt;
use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};

use super::BATCH;
use crate::error::SourceError;
use crate::key::Key;
use crate::ports::{KeySink, Quiesced, ScanCompleted, ScanFrom, Source};

/// A fixed list of keys: for services whose ids don't live in a database, and for tests. Cheap to
/// clone.
#[derive(Clone)]
pub struct Keys<K>(Arc<[K]>);

impl<K: Key> Keys<K> {
    /// The keys that exist; they may repeat.
    pub fn new(keys: impl IntoIterator<Item = K>) -> Self {
        Self(keys.into_iter().collect())
    }
}

impl<K> fmt::Debug for Keys<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({} keys)", self.0.len())
    }
}

impl<K: Key> Source for Keys<K> {
    type Key = K;

    fn describe(&self) -> String {
        "a list in memory".to_owned()
    }

    fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>> {
        Box::pin(ready(Ok(self.0.len() as u64)))
    }

    /// [`Quiesced::Drained`]: the list never changes.
    fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>> {
        Box::pin(ready(Ok(Quiesced::Drained)))
    }

    fn scan<'a>(
        &'a self,
        _from: ScanFrom,
        sink: &'a dyn KeySink<K>,
    ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>> {
        Box::pin(async move {
            for batch in self.0.chunks(BATCH) {
                sink.insert(batch);
                tokio::task::yield_now().await;
            }
            Ok(ScanCompleted::explicit_end())
        })
    }
}
