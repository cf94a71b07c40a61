//! Races on a real database and a real Redis, held at each await around them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{PgPool, SqlitePool};
use testbed::{PostgresServer, RedisServer, TempFolder};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::failpoints::{At, Failpoints, Held};
use super::store::TestStore;
use super::within;
use super::writer::Failure;
use crate::answer::{Answer, Verdict};
use crate::error::{SourceError, WriteError};
use crate::gate::Gate;
use crate::guard::Guard;
use crate::loader::{PgLoader, SqliteLoader};
use crate::ports::{KeySink, Loader, Quiesced, ScanCompleted, ScanFrom, Source};
use crate::shared_cache::RedisStore;
use crate::warm_up::{PgTable, SqliteTable};

/// A row is its version.
type Row = (i64,);

#[derive(Debug)]
struct HeldLoader<L>(L, Failpoints);

impl<L: Loader<i64, Row, Error = sqlx::Error>> Loader<i64, Row> for HeldLoader<L> {
    type Error = sqlx::Error;

    async fn load(&self, id: &i64) -> Result<Option<Row>, sqlx::Error> {
        self.1.pass(At::BeforeLoad).await;
        let row = self.0.load(id).await;
        self.1.pass(At::AfterLoad).await;
        row
    }
}

#[derive(Debug)]
struct HeldSource<S>(S, Failpoints);

impl<S: Source> Source for HeldSource<S> {
    type Key = S::Key;

    fn count(&self) -> BoxFuture<'_, Result<u64, SourceError>> {
        self.0.count()
    }

    fn quiesce(&self) -> BoxFuture<'_, Result<Quiesced, SourceError>> {
        self.0.quiesce()
    }

    fn scan<'a>(
        &'a self,
        from: ScanFrom,
        sink: &'a dyn KeySink<S::Key>,
    ) -> BoxFuture<'a, Result<ScanCompleted, SourceError>> {
        Box::pin(async move {
            let end = self.0.scan(from, sink).await;
            self.1.pass(At::BeforeEnd).await;
            end
        })
    }
}

#[derive(Clone)]
enum RealTable {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

impl RealTable {
    async fn run(&self, sql: &str) {
        let sql = sqlx::AssertSqlSafe(sql.to_owned());
        match self {
            RealTable::Sqlite(pool) => drop(sqlx::raw_sql(sql).execute(pool).await.unwrap()),
            RealTable::Postgres(pool) => drop(sqlx::raw_sql(sql).execute(pool).await.unwrap()),
        }
    }

    /// Both dialects have this upsert.
    async fn put(&self, id: i64, version: i64) {
        let set = format!(
            "INSERT INTO items (id, version) VALUES ({id}, {version}) \
             ON CONFLICT (id) DO UPDATE SET version = excluded.version"
        );
        self.run(&set).await;
    }
}

/// A guard on real servers.
struct GuardFixture {
    guard: Guard<i64, Row>,
    table: RealTable,
    failpoints: Failpoints,
    redis: Option<RedisServer>,
    _postgres: Option<PostgresServer>,
    _folder: TempFolder,
}

impl GuardFixture {
    async fn new(postgres: bool, redis: bool) -> Self {
        let folder = testbed::temp_folder();
        let failpoints = Failpoints::default();
        let postgres = postgres.then(PostgresServer::start);
        let redis = redis.then(RedisServer::start);
        let mut builder = Guard::builder("races").gate(Gate::bloom());
        if let Some(redis) = &redis {
            let store = Arc::new(RedisStore::open(&redis.url()).unwrap());
            // A busy machine must not look like an outage.
            let budget = Duration::from_secs(2);
            builder = builder
                .store(TestStore::over(store, failpoints.clone()))
                .store_timeout(budget)
                .single_instance();
        }
        let (table, builder) = match &postgres {
            Some(server) => {
                let pool = PgPool::connect(&server.url()).await.unwrap();
                let table = RealTable::Postgres(pool.clone());
                table.run("CREATE TABLE items (id bigint PRIMARY KEY, version bigint)").await;
                let loader = PgLoader::new(pool.clone(), "SELECT version FROM items WHERE id = $1");
                let source = PgTable::<i64>::new(pool, "items", "id").unwrap();
                let builder = builder.source(HeldSource(source, failpoints.clone()));
                (table, builder.loader(HeldLoader(loader, failpoints.clone())))
            }
            None => {
                let options = SqliteConnectOptions::new()
                    .filename(folder.path().join("items.db"))
                    .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal)
                    .synchronous(sqlx::sqlite::SqliteSynchronous::Off)
                    .create_if_missing(true);
                let pool = SqlitePoolOptions::new().connect_with(options).await.unwrap();
                let table = RealTable::Sqlite(pool.clone());
                table.run("CREATE TABLE items (id INTEGER PRIMARY KEY, version INTEGER)").await;
                let sql = "SELECT version FROM items WHERE id = ?1";
                let loader = SqliteLoader::new(pool.clone(), sql);
                let source = SqliteTable::<i64>::new(pool, "items", "id").unwrap();
                let builder = builder.source(HeldSource(source, failpoints.clone()));
                (table, builder.loader(HeldLoader(loader, failpoints.clone())))
            }
        };
        let guard = builder.build().await.unwrap();
        let ready = async {
            while !guard.is_ready() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within(ready).await;
        Self { guard, table, failpoints, redis, _postgres: postgres, _folder: folder }
    }

    async fn version(&self, id: i64) -> Option<i64> {
        within(self.guard.get(&id)).await.unwrap().value().map(|row| row.0)
    }

    /// Drops everything that Redis holds, as an eviction of all keys does.
    fn evict(&self) {
        if let Some(redis) = &self.redis {
            redis.command(&["FLUSHALL"]);
        }
    }

    fn reader(&self, id: i64) -> JoinHandle<Option<i64>> {
        let guard = self.guard.clone();
        tokio::spawn(async move { guard.get(&id).await.ok().and_then(Answer::value).map(|r| r.0) })
    }
}

/// A write whose steps the test takes.
struct SteppedWrite {
    commit: Option<oneshot::Sender<i64>>,
    committed: mpsc::UnboundedReceiver<()>,
    finish: Option<oneshot::Sender<Result<(), Failure>>>,
    written: JoinHandle<Result<(), WriteError<Failure>>>,
}

impl SteppedWrite {
    /// Begin is over when this returns.
    async fn begin(fixture: &GuardFixture, id: i64) -> Self {
        let (commit, version) = oneshot::channel();
        let (news, mut committed) = mpsc::unbounded_channel();
        let (finish, finished) = oneshot::channel();
        let (guard, table) = (fixture.guard.clone(), fixture.table.clone());
        let run = async move {
            let _ = news.send(());
            if let Ok(version) = version.await {
                table.put(id, version).await;
                let _ = news.send(());
            }
            finished.await.unwrap_or(Err(Failure::OutcomeUnknown))
        };
        let written = tokio::spawn(async move { guard.write(id, run).await });
        within(committed.recv()).await.unwrap();
        Self { commit: Some(commit), committed, finish: Some(finish), written }
    }

    async fn commit(&mut self, version: i64) {
        self.commit.take().unwrap().send(version).unwrap();
        within(self.committed.recv()).await.unwrap();
    }

    async fn finish(mut self, result: Result<(), Failure>) {
        drop(self.commit.take());
        let lost = result.is_err();
        self.finish.take().unwrap().send(result).unwrap();
        assert_eq!(within(self.written).await.unwrap().is_err(), lost);
    }
}

const DATABASES_AND_CACHES: [(bool, bool); 4] =
    [(false, false), (false, true), (true, false), (true, true)];

// Rules A1, A2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_36_a_write_that_commits_after_a_rebuilds_snapshot_is_not_refused() {
    for (postgres, redis) in DATABASES_AND_CACHES {
        let fixture = GuardFixture::new(postgres, redis).await;
        for id in 1..=3 {
            fixture.table.put(id, 1).await;
        }
        assert_eq!(fixture.guard.check(&70), Verdict::Absent);
        let mut before = SteppedWrite::begin(&fixture, 70).await;
        let end = fixture.failpoints.hold(At::BeforeEnd);
        let guard = fixture.guard.clone();
        let rebuilding = tokio::spawn(async move { guard.rebuild().await });
        end.arrived().await;
        let mut during = SteppedWrite::begin(&fixture, 71).await;
        before.commit(1).await;
        during.commit(1).await;
        before.finish(Ok(())).await;
        end.let_all_go();
        within(rebuilding).await.unwrap().unwrap();
        during.finish(Ok(())).await;
        assert_eq!(fixture.guard.status().gate.generation, 2);
        for id in [1, 2, 3, 70, 71] {
            assert_eq!(fixture.guard.check(&id), Verdict::Maybe, "{id}");
            assert_eq!(fixture.version(id).await, Some(1), "{id}");
        }
        assert_eq!(fixture.guard.check(&72), Verdict::Absent);
    }
}

// Rules A3, A4, B12.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_29_a_load_that_read_no_row_cannot_publish_its_null_after_the_insert() {
    for (postgres, redis) in DATABASES_AND_CACHES {
        let fixture = GuardFixture::new(postgres, redis).await;
        let mut failpoints = vec![At::BeforeLoad, At::AfterLoad];
        if redis {
            failpoints.extend([At::BeforeRead, At::AfterRead, At::BeforeFill]);
        }
        for (id, at) in (100..).zip(failpoints) {
            // The gate must pass the id before it exists.
            SteppedWrite::begin(&fixture, id).await.finish(Err(Failure::OutcomeKnown)).await;
            let held = fixture.failpoints.hold_one(at);
            let early = fixture.reader(id);
            held.arrived().await;
            let mut write = SteppedWrite::begin(&fixture, id).await;
            write.commit(1).await;
            write.finish(Ok(())).await;
            // Not even while the early one is still on its way.
            assert_eq!(fixture.version(id).await, Some(1), "{at:?}");
            held.let_all_go();
            let early = within(early).await.unwrap();
            assert!(early.is_none() || early == Some(1), "{at:?}: {early:?}");
            for _ in 0..3 {
                assert_eq!(fixture.version(id).await, Some(1), "{at:?}");
            }
        }
    }
}

/// The steps of one writer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Begin,
    Commit,
    End,
    Crash,
}

/// All interleavings of two sequences of steps, as the index of the sequence at each step.
fn orders(first: usize, second: usize) -> Vec<Vec<usize>> {
    if first == 0 && second == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    if first > 0 {
        all.extend(orders(first - 1, second).into_iter().map(|rest| [vec![0], rest].concat()));
    }
    if second > 0 {
        all.extend(orders(first, second - 1).into_iter().map(|rest| [vec![1], rest].concat()));
    }
    all
}

/// The history of one key: two writers in this order, a slow reader that has read before step `slow` and
/// goes on before step `goes_on`, an eviction before step `evicted`.
async fn life(
    fixture: &GuardFixture,
    id: i64,
    writers: [&[Step]; 2],
    order: &[usize],
    slow: usize,
    goes_on: usize,
    evicted: usize,
) {
    let case = format!("{writers:?} {order:?} slow {slow}..{goes_on} evicted {evicted}");
    fixture.table.put(id, 1).await;
    // The gate must pass the id.
    SteppedWrite::begin(fixture, id).await.finish(Err(Failure::OutcomeKnown)).await;
    let mut latest = 1;
    let mut open: [Option<SteppedWrite>; 2] = [None, None];
    let mut next = [0, 0];
    let mut reader: Option<(JoinHandle<Option<i64>>, Held)> = None;
    // A reader of the same generation would join the slow one.
    let mut moved = true;
    for (at, &writer) in order.iter().enumerate() {
        if at == evicted {
            fixture.evict();
        }
        if at == slow {
            fixture.evict();
            let held = fixture.failpoints.hold_one(At::AfterLoad);
            // From a key of which nothing is cached here, so that it must load.
            SteppedWrite::begin(fixture, id).await.finish(Err(Failure::OutcomeKnown)).await;
            let reading = fixture.reader(id);
            held.arrived().await;
            reader = Some((reading, held));
            moved = false;
        }
        if at == goes_on
            && let Some((reading, held)) = reader.take()
        {
            held.let_all_go();
            within(reading).await.unwrap();
        }
        if moved || reader.is_none() {
            assert_eq!(fixture.version(id).await, Some(latest), "before step {at} of {case}");
        }
        let step = writers[writer][next[writer]];
        next[writer] += 1;
        match step {
            Step::Begin => open[writer] = Some(SteppedWrite::begin(fixture, id).await),
            Step::Commit => {
                latest += 1;
                open[writer].as_mut().unwrap().commit(latest).await;
            }
            Step::End => open[writer].take().unwrap().finish(Ok(())).await,
            Step::Crash => open[writer].take().unwrap().finish(Err(Failure::OutcomeUnknown)).await,
        }
        moved |= matches!(step, Step::Begin | Step::End);
    }
    if let Some((reading, held)) = reader.take() {
        held.let_all_go();
        within(reading).await.unwrap();
    }
    for _ in 0..2 {
        assert_eq!(fixture.version(id).await, Some(latest), "in the end of {case}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_29_two_writers_of_one_key_leave_nothing_stale_in_any_order() {
    use Step::{Begin, Commit, Crash, End};
    const ENDS: &[Step] = &[Begin, Commit, End];
    const LOST: &[Step] = &[Begin, Commit, Crash];
    const NEVER: &[Step] = &[Begin, Crash];
    let mut lives = 0;
    for postgres in [false, true] {
        let fixture = GuardFixture::new(postgres, true).await;
        let mut id = 1_000;
        for writers in [[ENDS, ENDS], [ENDS, LOST], [ENDS, NEVER]] {
            for order in orders(writers[0].len(), writers[1].len()) {
                for slow in 0..order.len() {
                    for goes_on in [slow + 2, order.len()] {
                        id += 1;
                        lives += 1;
                        let evicted = (slow + goes_on) % (order.len() + 1);
                        life(&fixture, id, writers, &order, slow, goes_on, evicted).await;
                    }
                }
            }
        }
    }
    assert_eq!(lives, 2 * (20 * 6 + 20 * 6 + 10 * 5) * 2);
}
