//! What a scan handed over, and a way to break it off.

use crate::error::SourceError;
use crate::key::{Key, KeyBytes};
use crate::ports::{Cursor, Scan, ScanCompleted, ScanFrom, Source};

#[derive(Debug, Default)]
pub(super) struct Scanned {
    pub(super) keys: Vec<KeyBytes>,
    /// After how many keys each checkpoint came.
    pub(super) checkpoints: Vec<(usize, Cursor)>,
}

impl Scan for Scanned {
    fn key(&mut self, canonical: &[u8]) {
        self.keys.push(KeyBytes::of(&canonical.to_vec()));
    }

    fn checkpoint(&mut self, cursor: Cursor) {
        self.checkpoints.push((self.keys.len(), cursor));
    }
}

impl Scanned {
    pub(super) async fn resume_from(
        source: &dyn Source,
        from: ScanFrom,
    ) -> Result<Self, SourceError> {
        let mut scanned = Self::default();
        let _end: ScanCompleted = source.scan(from, &mut scanned).await?;
        Ok(scanned)
    }

    /// Everything.
    pub(super) async fn all_of(source: &dyn Source) -> Self {
        let all = Self::resume_from(source, ScanFrom::Start).await;
        all.unwrap()
    }
}

pub(super) fn bytes_of<K: Key>(keys: impl IntoIterator<Item = K>) -> Vec<KeyBytes> {
    keys.into_iter().map(|key| KeyBytes::of(&key)).collect()
}

/// Each key once, all of them, in order; and after each checkpoint exactly the rest.
pub(super) async fn has_exactly<K: Key>(source: &dyn Source, keys: Vec<K>) {
    assert_eq!(source.count().await.unwrap(), keys.len() as u64);
    let keys = bytes_of(keys);
    let scanned = Scanned::all_of(source).await;
    assert_eq!(scanned.keys.len(), keys.len());
    assert!(scanned.keys == keys, "other keys, or another order");
    for (already, cursor) in scanned.checkpoints {
        let rest = Scanned::resume_from(source, ScanFrom::After(cursor)).await;
        assert!(rest.unwrap().keys == keys[already..], "after {already} keys");
    }
}
