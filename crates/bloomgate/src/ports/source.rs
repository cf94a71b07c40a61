//! The port to the keys that exist.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::error::SourceError;

/// A place in a source's order, opaque to everyone but the source that named it.
#[derive(Clone)]
pub struct Cursor(Arc<dyn Any + Send + Sync>);

impl Cursor {
    /// Wraps a cursor.
    #[must_use]
    pub fn new<T: Any + Send + Sync>(cursor: T) -> Self {
        Self(Arc::new(cursor))
    }

    /// The cursor, if it is of this type.
    #[must_use]
    pub fn position<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cursor")
    }
}

/// Where a scan begins.
#[derive(Clone, Debug, Default)]
pub enum ScanFrom {
    /// Before the first key.
    #[default]
    Start,
    /// After the place that a [`Scan::checkpoint`] named.
    After(Cursor),
}

/// What a scan hands its keys to.
pub trait Scan: Send {
    /// The canonical bytes of one key.
    fn key(&mut self, canonical: &[u8]);
    /// Everything up to `place` has been handed over; a scan that fails later may resume here.
    fn checkpoint(&mut self, cursor: Cursor);
}

/// The word of a source that it reached the end of its keys. Nothing else makes a generation
/// valid: a stream that merely failpoints is not an end.
#[must_use]
#[derive(Debug)]
pub struct ScanCompleted(());

impl ScanCompleted {
    /// To be returned by a source after, and only after, the database has said "no more rows".
    pub fn explicit_end() -> Self {
        Self(())
    }
}

/// What a source can say of writes that a killed predecessor may have left under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quiesced {
    /// Every write that was under way when the question was put has ended.
    Drained,
    /// The database can't tell; the guard waits for the write window to pass.
    Unknown,
}

/// Where the existing ids come from.
pub trait Source: Send + Sync + fmt::Debug + 'static {
    /// How many keys there are, to size the gate by.
    fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>>;

    /// Waits until every write that was under way at the call has ended (rule A8).
    fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>> {
        Box::pin(std::future::ready(Ok(Quiesced::Unknown)))
    }

    /// Hands over every key from `from` to the end, and says so explicitly. A key that was
    /// committed before the call must be among them; a row that can't be decoded is an error.
    fn scan<'a>(
        &'a self,
        from: ScanFrom,
        into: &'a mut dyn Scan,
    ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>>;
}
