//! Streams of keys as sources.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{FutureExt as _, Stream, StreamExt as _, TryFutureExt as _, stream};
use parking_lot::Mutex;

use super::super::{Keys, Progress, fill, from_stream};
use super::scanned::{Scanned, has_exactly, scan_error};
use crate::clock::Clock;
use crate::ports::{Quiesced, Source};

fn integers(keys: i64) -> impl Stream<Item = io::Result<i64>> {
    stream::iter((0..keys).map(Ok))
}

#[tokio::test]
async fn every_key_of_a_stream_is_handed_over_at_every_number_of_batches() {
    let batch = super::super::BATCH as i64;
    for keys in [0, 1, batch - 1, batch, batch + 1, 3 * batch] {
        has_exactly(&from_stream(move || integers(keys)), (0..keys).collect()).await;
    }
}

#[tokio::test]
async fn a_stream_that_pauses_hands_over_the_keys_before_the_pause() {
    let source =
        from_stream(|| stream::iter([Ok::<_, io::Error>(1_i64), Ok(2)]).chain(stream::pending()));
    let (clock, _time) = Clock::manual();
    let (seen, progress) = (Mutex::new(Vec::new()), Progress::default());
    let insert = |keys: &[i64]| seen.lock().extend_from_slice(keys);
    let filling = fill(&source, insert, &progress, &clock);
    assert!(filling.now_or_never().is_none());
    assert_eq!(seen.into_inner(), [1, 2]);
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_no_end_and_begins_again_at_its_first_key() {
    let opened = Arc::new(AtomicUsize::new(0));
    let attempts = Arc::clone(&opened);
    let source = from_stream(move || {
        let fails = attempts.fetch_add(1, Ordering::Relaxed) < 2;
        let last = if fails { Err(io::Error::other("the server hung up")) } else { Ok(3) };
        stream::iter([Ok(1_i64), Ok(2), last])
    });
    let error = scan_error(&source).await;
    let below = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(below, "the server hung up");

    let (clock, time) = Clock::manual();
    let progress = Arc::new(Progress::default());
    let shown = Arc::clone(&progress);
    let filling = tokio::spawn(async move {
        let _end = fill(&source, |_: &[i64]| {}, &shown, &clock).await;
    });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!filling.is_finished());
    assert!(progress.last_error().unwrap().contains("the server hung up"));
    time.advance(Duration::from_millis(200));
    filling.await.unwrap();
    assert_eq!(opened.load(Ordering::Relaxed), 3);
    assert_eq!(progress.last_error(), None);
}

#[tokio::test]
async fn a_stream_whose_opening_fails_is_an_error() {
    let open = || async { Err::<stream::Empty<io::Result<i64>>, _>(io::Error::other("no server")) };
    let source = from_stream(move || open().try_flatten_stream());
    scan_error(&source).await;
    assert!(source.count().await.is_err());
}

#[tokio::test]
async fn the_number_of_keys_is_given_asked_for_or_counted() {
    let source = from_stream(|| integers(10));
    assert_eq!(source.count().await.unwrap(), 10);
    assert_eq!(source.clone().with_count(7).count().await.unwrap(), 7);
    let asked = source.clone().with_count_from(async || Ok::<_, io::Error>(8));
    assert_eq!(asked.count().await.unwrap(), 8);
    let failing = source.with_count_from(async || Err(io::Error::other("no server")));
    assert!(failing.count().await.is_err());
}

#[tokio::test]
async fn a_stream_quiesces_as_another_source_does() {
    let source = from_stream(|| integers(1));
    assert_eq!(source.quiesce().await.unwrap(), Quiesced::Unknown);
    // A source of other keys of the same database.
    let source = source.with_quiesce_of(Keys::new(["a".to_owned()]));
    assert_eq!(source.quiesce().await.unwrap(), Quiesced::Drained);
}

#[tokio::test]
async fn a_stream_has_the_name_that_it_is_given() {
    let source = from_stream(|| integers(1));
    assert_eq!(source.describe(), "a stream of keys");
    let source = source.with_name("ids of shop.example:80");
    assert_eq!(source.describe(), "ids of shop.example:80");
    assert_eq!(Scanned::all_of(&source).await.keys, [0]);
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_stream_may_borrow_the_pool_that_it_reads_from() {
    let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1);
    let pool = pool.connect("sqlite::memory:").await.unwrap();
    let rows = "CREATE TABLE items (id INTEGER PRIMARY KEY); INSERT INTO items VALUES (3), (1);";
    sqlx::raw_sql(rows).execute(&pool).await.unwrap();
    let source = super::super::from_stream_of(pool, |pool| {
        sqlx::query_scalar::<_, i64>("SELECT id FROM items ORDER BY id").fetch(pool)
    });
    has_exactly(&source, vec![1, 3]).await;
}
