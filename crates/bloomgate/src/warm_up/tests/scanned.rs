//! A sink that records a scan.

use std::time::Duration;

use parking_lot::Mutex;

use crate::error::SourceError;
use crate::key::Key;
use crate::ports::{Cursor, KeySink, ScanCompleted, ScanFrom, Source};

/// For a scan that would never end.
const CEILING: Duration = Duration::from_secs(60);

/// The record of a scan that reached its explicit end.
#[derive(Debug)]
pub(super) struct Scanned<K> {
    pub(super) keys: Vec<K>,
    /// The cursors, each with the number of keys before it.
    pub(super) checkpoints: Vec<(usize, Cursor)>,
}

struct Recorder<K>(Mutex<Scanned<K>>);

impl<K: Key> KeySink<K> for Recorder<K> {
    fn insert(&self, keys: &[K]) {
        self.0.lock().keys.extend_from_slice(keys);
    }

    fn checkpoint(&self, cursor: Cursor) {
        let mut scanned = self.0.lock();
        let keys = scanned.keys.len();
        scanned.checkpoints.push((keys, cursor));
    }
}

impl<K: Key> Scanned<K> {
    pub(super) async fn resume_from(
        source: &dyn Source<Key = K>,
        from: ScanFrom,
    ) -> Result<Self, SourceError> {
        let recorder = Recorder(Mutex::new(Self { keys: Vec::new(), checkpoints: Vec::new() }));
        let scan = tokio::time::timeout(CEILING, source.scan(from, &recorder));
        let _end: ScanCompleted = scan.await.expect("the scan does not end")?;
        Ok(recorder.0.into_inner())
    }

    pub(super) async fn all_of(source: &dyn Source<Key = K>) -> Self {
        Self::resume_from(source, ScanFrom::Start).await.unwrap()
    }
}

/// Fails unless the source yields these keys once each, in this order, and after each checkpoint
/// exactly those behind it, also when the cursor was written to a text and read back.
pub(super) async fn has_exactly<K: Key>(source: &dyn Source<Key = K>, keys: Vec<K>) {
    assert_eq!(source.count().await.unwrap(), keys.len() as u64);
    let scanned = Scanned::all_of(source).await;
    assert_eq!(scanned.keys.len(), keys.len());
    assert!(scanned.keys == keys, "other keys, or another order");
    for (already, cursor) in scanned.checkpoints {
        let written = serde_json::to_string(&cursor).unwrap();
        let cursor = serde_json::from_str(&written).unwrap();
        let rest = Scanned::resume_from(source, ScanFrom::After(cursor)).await;
        assert!(rest.unwrap().keys == keys[already..], "after {already} keys");
    }
}

/// Fails unless a scan from the start fails; returns its error.
pub(super) async fn scan_error<K: Key>(source: &dyn Source<Key = K>) -> SourceError {
    match Scanned::resume_from(source, ScanFrom::Start).await {
        Err(error) => error,
        Ok(_) => panic!("{} was scanned", source.describe()),
    }
}
