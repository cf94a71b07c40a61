//! Scans of PostgreSQL tables that fail half-way.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use testbed::PostgresServer;

use super::super::super::{Progress, fill};
use super::super::scanned::scan_error;
use super::{CEILING, ITEMS, PAGE, run, table};
use crate::clock::Clock;
use crate::ports::Source;

/// Two pages and a bit, on a pool whose connections have this name.
async fn large_table(server: &PostgresServer, name: &str) -> PgPool {
    let url = format!("{}&application_name={name}", server.create_database());
    let pool = PgPoolOptions::new().max_connections(2).connect(&url).await.unwrap();
    let rows = 2 * PAGE + 10;
    run(&pool, &format!("{ITEMS} INSERT INTO items SELECT generate_series(1, {rows})")).await;
    pool
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_35_filling_resumes_a_scan_whose_backend_was_killed_within_a_query() {
    let server = PostgresServer::shared();
    let pool = large_table(server, "killed").await;
    let url = pool.connect_options();
    let database = server.url_for(url.get_database().unwrap());
    let source = table::<i64>(&pool, "items", "id");
    // A lock that is taken after the first page holds the second one up. A backend that waits for
    // it is killed, twice; then the lock goes.
    let locking = PgPoolOptions::new()
        .max_connections(2)
        .connect_with((*url).clone().application_name("locking"))
        .await
        .unwrap();
    let (progress, clock) = (Progress::default(), Clock::system());
    let keys = Mutex::new(Vec::new());
    let (reached, mut first_page) = tokio::sync::mpsc::unbounded_channel();
    let insert = |page: &[i64]| {
        keys.lock().extend_from_slice(page);
        if keys.lock().len() == PAGE as usize {
            // The page's query is over; the next one can't have begun.
            let lock = "BEGIN; LOCK TABLE items IN ACCESS EXCLUSIVE MODE";
            let locked = reached.send(lock);
            locked.unwrap();
            while server.psql_at(
                &database,
                "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted
                 AND relation = 'items'::regclass AND database =
                   (SELECT oid FROM pg_database WHERE datname = current_database())",
            ) == "0"
            {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    };
    let filling = fill(&source, insert, &progress, &clock);
    let killing = tokio::spawn(async move {
        let lock = first_page.recv().await.unwrap();
        let mut holder = locking.acquire().await.unwrap();
        sqlx::raw_sql(lock).execute(&mut *holder).await.unwrap();
        let mut killed = 0_i64;
        let end = Instant::now() + CEILING;
        while killed < 2 {
            assert!(Instant::now() < end, "no backend waits for the lock");
            let kill = "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid))
                FROM pg_stat_activity
                WHERE application_name = 'killed' AND wait_event_type = 'Lock'";
            killed += sqlx::query_scalar::<_, i64>(kill).fetch_one(&locking).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        sqlx::raw_sql("ROLLBACK").execute(&mut *holder).await.unwrap();
    });
    let _end = tokio::time::timeout(CEILING, filling).await.unwrap();
    killing.await.unwrap();
    // It went on after the first page: every key once.
    let keys = keys.into_inner();
    assert!(keys.iter().copied().eq(1..=2 * PAGE + 10), "{} keys", keys.len());
}

#[tokio::test]
async fn case_35_filling_resumes_a_scan_that_ran_into_the_statement_time_out() {
    let server = PostgresServer::shared();
    let pool = large_table(server, "hindered").await;
    // A view whose rows past the first page take too long, until the brake is off.
    run(
        &pool,
        &format!(
            "CREATE TABLE brake (seconds float8); INSERT INTO brake VALUES (30);
             CREATE FUNCTION slow(bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$ BEGIN
               IF $1 = {} THEN PERFORM pg_sleep((SELECT seconds FROM brake)); END IF;
               RETURN $1; END $$;
             CREATE VIEW slow_items AS SELECT slow(id) AS id FROM items;",
            PAGE + 5
        ),
    )
    .await;
    let options = (*pool.connect_options()).clone().options([("statement_timeout", "700ms")]);
    let hurried = PgPoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    // Sorting the view asks for all of its rows, so that already the first page fails.
    let source = table::<i64>(&hurried, "slow_items", "id");
    let error = scan_error(&source).await;
    let below = std::error::Error::source(&error).unwrap().to_string();
    assert!(below.contains("statement timeout"), "{below}");

    let progress = Progress::default();
    let (seen, clock) = (Mutex::new(vec![false; 2 * PAGE as usize + 11]), Clock::system());
    let insert = |keys: &[i64]| {
        let mut seen = seen.lock();
        for key in keys {
            seen[*key as usize] = true;
        }
    };
    let filling = fill(&source, insert, &progress, &clock);
    let release = async {
        let end = Instant::now() + CEILING;
        while progress.last_error().is_none() {
            assert!(Instant::now() < end, "no failure");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        run(&pool, "UPDATE brake SET seconds = 0; ALTER ROLE postgres SET statement_timeout = 0")
            .await;
        run(&hurried, "SET statement_timeout = 0").await;
    };
    let (_end, ()) =
        tokio::time::timeout(CEILING, async { tokio::join!(filling, release) }).await.unwrap();
    assert!(seen.lock()[1..].iter().all(|seen| *seen));
    assert_eq!(progress.last_error(), None);
}

#[tokio::test]
async fn a_server_that_is_away_is_an_error() {
    let server = PostgresServer::start();
    let pool = PgPoolOptions::new()
        .acquire_timeout(Duration::from_millis(500))
        .connect_lazy(&server.url())
        .unwrap();
    server.kill();
    let source = table::<i64>(&pool, "items", "id");
    assert!(source.count().await.is_err());
    assert!(source.quiesce().await.is_err());
    scan_error(&source).await;
}
