//! A source that is a closure over a stream of keys.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};

use super::BATCH;
use crate::error::{BoxError, SourceError};
use crate::key::Key;
use crate::ports::{KeySink, Quiesced, ScanCompleted, ScanFrom, Source};

/// A source made of a closure that opens a stream of all keys, for databases and clients of your
/// own.
///
/// The stream's `None` is the explicit end of the keys: return it only after the database has said
/// "no more rows", and an `Err` for everything that merely breaks off. A scan that failed begins
/// again at the first key, so the closure is called once for each attempt. Where the stream has to
/// be opened by a future, make one stream of both with
/// [`try_flatten_stream`](futures_util::TryFutureExt::try_flatten_stream).
///
/// A stream says nothing of writes under way, so that the guard waits for its write window at each
/// start; see [`with_quiesce_of`](StreamSource::with_quiesce_of).
///
/// ```
/// use std::io;
///
/// use bloomgate::warm_up;
/// use futures_util::{TryFutureExt as _, stream};
///
/// async fn open() -> io::Result<Vec<io::Result<i64>>> {
///     Ok(vec![Ok(1), Ok(2), Ok(3)])
/// }
///
/// let source = warm_up::from_stream(|| open().map_ok(stream::iter).try_flatten_stream())
///     .with_count(3);
/// ```
pub fn from_stream<K, E, S>(open: impl Fn() -> S + Send + Sync + 'static) -> StreamSource<K>
where
    K: Key,
    E: Into<BoxError> + 'static,
    S: Stream<Item = Result<K, E>> + Send + 'static,
{
    from_stream_of((), move |()| open().boxed())
}

/// As [`from_stream`], for a stream that borrows what it reads from, such as a pool of connections.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # fn source(pool: sqlx::SqlitePool) -> bloomgate::warm_up::StreamSource<i64> {
/// use bloomgate::warm_up;
///
/// // This sqlx can be another version than bloomgate's.
/// warm_up::from_stream_of(pool, |pool| sqlx::query_scalar("SELECT id FROM products").fetch(pool))
/// # }
/// ```
pub fn from_stream_of<C, K, E>(
    context: C,
    open: impl for<'a> Fn(&'a C) -> BoxStream<'a, Result<K, E>> + Send + Sync + 'static,
) -> StreamSource<K>
where
    C: Send + Sync + 'static,
    K: Key,
    E: Into<BoxError> + 'static,
{
    let stream = Opener { context, open };
    StreamSource {
        name: "a stream of keys".to_owned(),
        stream: Arc::new(stream),
        count: None,
        quiesce: None,
    }
}

/// See [`from_stream`]. Cheap to clone.
#[derive(Clone)]
pub struct StreamSource<K> {
    name: String,
    stream: Arc<dyn OpenStream<K>>,
    count: Option<Arc<dyn Count>>,
    quiesce: Option<Arc<dyn Quiesce>>,
}

impl<K: Key> StreamSource<K> {
    /// The number of keys, to size the gate by. Default: the keys of one more pass over the stream
    /// are counted, each time that a gate is built.
    #[must_use]
    pub fn with_count(self, keys: u64) -> Self {
        self.with_count_from(move || std::future::ready(Ok::<_, SourceError>(keys)))
    }

    /// Asks for the number of keys each time that a gate is built.
    #[must_use]
    pub fn with_count_from<E, F>(mut self, count: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        E: Into<BoxError>,
        F: Future<Output = Result<u64, E>> + Send + 'static,
    {
        self.count = Some(Arc::new(Counter(count)));
        self
    }

    /// Asks another source about writes under way, such as a
    /// `PgTable` of the same database. Default: the guard waits for its
    /// write window.
    #[must_use]
    pub fn with_quiesce_of(mut self, source: impl Source) -> Self {
        self.quiesce = Some(Arc::new(source));
        self
    }

    /// The name in log lines; never a password. Default: `a stream of keys`.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

impl<K> fmt::Debug for StreamSource<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamSource").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<K: Key> Source for StreamSource<K> {
    type Key = K;

    fn describe(&self) -> String {
        self.name.clone()
    }

    fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>> {
        match &self.count {
            Some(count) => count.count(),
            None => Box::pin(
                self.stream.open().try_fold(0, async |keys: u64, _key| Ok(keys.saturating_add(1))),
            ),
        }
    }

    fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>> {
        match &self.quiesce {
            Some(other) => other.quiesce(),
            None => Box::pin(std::future::ready(Ok(Quiesced::Unknown))),
        }
    }

    fn scan<'a>(
        &'a self,
        _from: ScanFrom,
        sink: &'a dyn KeySink<K>,
    ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>> {
        Box::pin(async move {
            let mut batches = self.stream.open().ready_chunks(BATCH);
            let mut keys = Vec::new();
            while let Some(batch) = batches.next().await {
                keys.clear();
                for key in batch {
                    keys.push(key?);
                }
                sink.insert(&keys);
                tokio::task::yield_now().await;
            }
            Ok(ScanCompleted::explicit_end())
        })
    }
}

/// A closure that opens a stream, its types forgotten.
trait OpenStream<K>: Send + Sync {
    fn open(&self) -> BoxStream<'_, Result<K, SourceError>>;
}

struct Opener<C, F> {
    context: C,
    open: F,
}

impl<C, K, E, F> OpenStream<K> for Opener<C, F>
where
    C: Send + Sync,
    K: Key,
    E: Into<BoxError> + 'static,
    F: for<'a> Fn(&'a C) -> BoxStream<'a, Result<K, E>> + Send + Sync,
{
    fn open(&self) -> BoxStream<'_, Result<K, SourceError>> {
        (self.open)(&self.context)
            .map_err(|error| SourceError::new("the stream of keys broke off").with_source(error))
            .boxed()
    }
}

/// A closure that counts, its types forgotten.
trait Count: Send + Sync {
    fn count(&self) -> BoxFuture<'static, Result<u64, SourceError>>;
}

struct Counter<F>(F);

impl<E, F, Fut> Count for Counter<F>
where
    E: Into<BoxError>,
    F: Fn() -> Fut + Send + Sync,
    Fut: Future<Output = Result<u64, E>> + Send + 'static,
{
    fn count(&self) -> BoxFuture<'static, Result<u64, SourceError>> {
        let counting = (self.0)();
        Box::pin(async move {
            let counted = counting.await;
            counted
                .map_err(|error| SourceError::new("the keys can't be counted").with_source(error))
        })
    }
}

/// A source that is asked about writes under way, its key type forgotten.
trait Quiesce: Send + Sync {
    fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>>;
}

impl<S: Source> Quiesce for S {
    fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>> {
        Source::quiesce(self)
    }
}
