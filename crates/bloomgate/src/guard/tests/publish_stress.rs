//! Reads and writes of a few keys on several threads: publishing is one step with its check (rule
//! A3).

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::answer::Answer;
use crate::error::BoxError;
use crate::gate::Gate;
use crate::guard::Guard;
use crate::key::Key;
use crate::warm_up::Keys;

const KEYS: usize = 4;
const READERS_OF_EACH: usize = 3;
const RUNS_FOR: Duration = Duration::from_secs(3);
/// Reads after each write, among which a stale entry would be found.
const READS_AFTER_A_WRITE: usize = 4;

/// A key that takes its time, every other time that it is cloned. The local cache clones it while
/// it publishes, so that a write has time to begin and end between the check and the publication,
/// if they are two steps.
#[derive(Debug, PartialEq, Eq)]
struct SlowKey(u64);

impl Clone for SlowKey {
    fn clone(&self) -> Self {
        if rand::random() {
            std::thread::sleep(Duration::from_millis(2));
        }
        Self(self.0)
    }
}

impl Key for SlowKey {
    fn kind() -> Cow<'static, str> {
        u64::kind()
    }

    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        self.0.with_bytes(f)
    }
}

/// The committed version of each key.
type Rows = Arc<[AtomicU64; KEYS]>;

async fn guard(rows: &Rows) -> Guard<SlowKey, u64> {
    let rows = Arc::clone(rows);
    let load = move |key: SlowKey| {
        let version = rows[key.0 as usize].load(Ordering::SeqCst);
        async move { Ok::<_, BoxError>(Some(version)) }
    };
    Guard::builder("stress")
        .gate(Gate::open())
        .source(Keys::new((0..KEYS as u64).map(SlowKey)))
        .loader(crate::loader::from_fn(load))
        .build()
        .await
        .unwrap()
}

/// The version that the guard answers with.
async fn version(guard: &Guard<SlowKey, u64>, key: u64) -> u64 {
    match guard.get(&SlowKey(key)).await.unwrap() {
        Answer::Found { value, .. } => *value,
        Answer::Absent(_) => 0,
    }
}

/// Writes one key again and again; the number of its reads after a write that were older.
///
/// Two writes a millisecond apart: a load between them is published, if that is slow, after the
/// second one.
async fn write_and_read(guard: Guard<SlowKey, u64>, rows: Rows, key: u64, end: Instant) -> usize {
    let mut stale = 0;
    while Instant::now() < end {
        let mut written = 0;
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let committed = Arc::clone(&rows);
            let run = async move {
                Ok::<_, Infallible>(committed[key as usize].fetch_add(1, Ordering::SeqCst) + 1)
            };
            written = guard.write(SlowKey(key), run).await.unwrap();
        }
        for _ in 0..READS_AFTER_A_WRITE {
            stale += usize::from(version(&guard, key).await < written);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    stale
}

#[tokio::test(flavor = "multi_thread", worker_threads = 16)]
async fn case_29_on_many_threads_no_read_after_a_write_is_older_than_it() {
    let rows: Rows = Arc::new(std::array::from_fn(|_| AtomicU64::new(0)));
    let guard = guard(&rows).await;
    let over = Arc::new(AtomicBool::new(false));
    let mut readers = Vec::new();
    for key in (0..KEYS as u64).cycle().take(KEYS * READERS_OF_EACH) {
        let (guard, over) = (guard.clone(), Arc::clone(&over));
        readers.push(tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let _ = version(&guard, key).await;
                tokio::task::yield_now().await;
            }
        }));
    }
    let end = Instant::now() + RUNS_FOR;
    let writers: Vec<_> = (0..KEYS as u64)
        .map(|key| tokio::spawn(write_and_read(guard.clone(), Arc::clone(&rows), key, end)))
        .collect();
    let mut stale = 0;
    for writer in writers {
        stale += writer.await.unwrap();
    }
    over.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
    let written: u64 = rows.iter().map(|row| row.load(Ordering::SeqCst)).sum();
    assert!(written > 0, "nothing was written");
    assert_eq!(stale, 0, "stale reads after {written} writes");
}
