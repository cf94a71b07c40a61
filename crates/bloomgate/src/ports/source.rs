//! The port to the keys that exist.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::SourceError;
use crate::key::Key;

/// A position in a source's order of keys, opaque to all but the source that made it.
///
/// It can be written to a file and read back by another process: it serialises as one text. That
/// text holds a key, so `Debug` doesn't show it.
///
/// ```
/// use bloomgate::ports::Cursor;
///
/// let cursor = Cursor::new(&("orders", 42))?;
/// let text = serde_json::to_string(&cursor)?;
/// let read: Cursor = serde_json::from_str(&text)?;
/// assert_eq!(read.position::<(String, u64)>()?, ("orders".to_owned(), 42));
/// assert!(read.position::<bool>().unwrap_err().is_cursor_mismatch());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(Box<str>);

impl Cursor {
    /// Encodes a position (as JSON). A source that could meet a cursor of another source names
    /// itself in the position.
    ///
    /// # Errors
    /// If the position can't be written as JSON, for instance a map whose keys aren't texts.
    pub fn new<T: Serialize + ?Sized>(position: &T) -> Result<Self, SourceError> {
        match serde_json::to_string(position) {
            Ok(json) => Ok(Self(json.into())),
            Err(error) => Err(SourceError::new("a position can't be encoded").with_source(error)),
        }
    }

    /// Decodes the position.
    ///
    /// # Errors
    /// A [mismatch](SourceError::is_cursor_mismatch) if the cursor holds a position of another
    /// type.
    pub fn position<T: DeserializeOwned>(&self) -> Result<T, SourceError> {
        serde_json::from_str(&self.0).map_err(|error| {
            SourceError::cursor_mismatch("the cursor holds another source's position")
                .with_source(error)
        })
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cursor({} bytes)", self.0.len())
    }
}

/// Where a scan begins.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ScanFrom {
    /// Before the first key.
    #[default]
    Start,
    /// After the position of a [`KeySink::checkpoint`].
    After(Cursor),
}

/// The receiver of a scan's keys.
///
/// It takes keys by shared reference, so that a source can read several ranges at once.
pub trait KeySink<K>: Send + Sync {
    /// Takes a batch of keys, in any order; keys may repeat.
    ///
    /// A few hundred to a few thousand keys are a good batch. The call returns when the keys are
    /// in; a source that has many batches at hand yields to the runtime between them.
    fn insert(&self, keys: &[K]);

    /// Notes that every key up to `cursor` was handed over: a scan that fails later may resume
    /// there. A source that reads several ranges at once gives a cursor that is right for all of
    /// them.
    fn checkpoint(&self, cursor: Cursor);
}

/// Proof that a source reached the end of its keys. Nothing else makes a generation valid: a
/// stream that merely breaks off is not an end.
#[must_use]
#[derive(Debug)]
pub struct ScanCompleted(());

impl ScanCompleted {
    /// To be returned by a source after, and only after, the database has said "no more rows".
    pub fn explicit_end() -> Self {
        Self(())
    }
}

/// What a source knows of writes that a killed predecessor may have left under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quiesced {
    /// Every write that was under way at the call has ended.
    Drained,
    /// The source doesn't know; the guard waits for the write window to pass.
    Unknown,
}

/// The source of the keys that exist.
///
/// A source yields keys of one type, and a guard takes a source of its own key type only: the text
/// `"1"` and the integer 1 are different keys.
///
/// ```compile_fail,E0271
/// use bloomgate::{Guard, warm_up};
///
/// // Integers from requests would all be refused by a gate that was filled with texts.
/// let builder = Guard::<i64, String>::builder("names");
/// let builder = builder.source(warm_up::Keys::new(["1".to_owned()]));
/// ```
pub trait Source: Send + Sync + fmt::Debug + 'static {
    /// The keys that it yields.
    type Key: Key;

    /// Where the keys come from, for log lines: a server's host and port, a file, a table; never a
    /// password. Default: the name of the type.
    fn describe(&self) -> String {
        std::any::type_name::<Self>().to_owned()
    }

    /// How many keys there are, to size the gate by.
    fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>>;

    /// Waits until every write that was under way at the call has ended (rule A8). Default:
    /// [`Quiesced::Unknown`] at once.
    fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>> {
        Box::pin(std::future::ready(Ok(Quiesced::Unknown)))
    }

    /// Hands over every key after `from`, and returns the proof of the end. A key that was
    /// committed before the call must be among them; a row that can't be decoded is an error.
    ///
    /// A cursor that this source did not make is a
    /// [mismatch](SourceError::cursor_mismatch); the guard then scans from the start.
    fn scan<'a>(
        &'a self,
        from: ScanFrom,
        sink: &'a dyn KeySink<Self::Key>,
    ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>>;
}

macro_rules! forward_source {
    ($($pointer:ident),+) => {$(
        impl<S: Source + ?Sized> Source for $pointer<S> {
            type Key = S::Key;

            fn describe(&self) -> String {
                (**self).describe()
            }

            fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>> {
                (**self).count()
            }

            fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>> {
                (**self).quiesce()
            }

            fn scan<'a>(
                &'a self,
                from: ScanFrom,
                sink: &'a dyn KeySink<S::Key>,
            ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>> {
                (**self).scan(from, sink)
            }
        }
    )+};
}

forward_source!(Arc, Box);
