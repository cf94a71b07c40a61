//! A source that is a list of keys in memory.

use futures_util::future::{BoxFuture, ready};

use crate::error::SourceError;
use crate::key::{Key, KeyBytes};
use crate::ports::{Quiesced, Scan, ScanCompleted, ScanFrom, Source};

/// A fixed list of keys: for services whose ids don't live in a database, and for tests.
#[derive(Clone, Debug)]
pub struct Keys(Vec<KeyBytes>);

impl Keys {
    /// The keys that exist.
    pub fn new<K: Key>(keys: impl IntoIterator<Item = K>) -> Self {
        Self(keys.into_iter().map(|key| KeyBytes::of(&key)).collect())
    }
}

impl Source for Keys {
    fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>> {
        Box::pin(ready(Ok(self.0.len() as u64)))
    }

    fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>> {
        // Nobody writes to a fixed list.
        Box::pin(ready(Ok(Quiesced::Drained)))
    }

    fn scan<'a>(
        &'a self,
        _from: ScanFrom,
        into: &'a mut dyn Scan,
    ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>> {
        for key in &self.0 {
            into.key(key.as_slice());
        }
        Box::pin(ready(Ok(ScanCompleted::explicit_end())))
    }
}
