//! PostgreSQL tables.

use std::time::{Duration, Instant};

use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, PgPool};
use testbed::PostgresServer;

use super::super::{PgTable, Progress, fill};
use super::scanned::{Scanned, bytes_of, has_exactly};
use crate::clock::Clock;
use crate::key::KeyBytes;
use crate::ports::{Quiesced, ScanFrom, Source};

const PAGE: i64 = super::super::postgres::PAGE as i64;
const CEILING: Duration = Duration::from_secs(60);

async fn pool(sql: &str) -> PgPool {
    let pool = PgPoolOptions::new()
        .max_connections(5)
        .connect(&PostgresServer::shared().create_database())
        .await
        .unwrap();
    run(&pool, sql).await;
    pool
}

async fn run(pool: &PgPool, sql: &str) {
    let sql = AssertSqlSafe(sql.to_owned());
    sqlx::raw_sql(sql).execute(pool).await.unwrap();
}

fn table<K>(pool: &PgPool, table: &str, column: &str) -> PgTable<K> {
    PgTable::new(pool.clone(), table, column).unwrap()
}

const ITEMS: &str = "CREATE TABLE items (id bigint PRIMARY KEY);";

#[tokio::test]
async fn every_row_is_handed_over_at_every_number_of_pages() {
    for rows in [0, 1, PAGE - 1, PAGE, PAGE + 1] {
        let insert = format!("INSERT INTO items SELECT generate_series(1, {rows})");
        let pool = pool(&format!("{ITEMS} {insert}")).await;
        has_exactly(&table::<i64>(&pool, "items", "id"), (1..=rows).collect()).await;
    }
}

#[tokio::test]
async fn case_38_gaps_and_negative_ids_are_passed_over_and_handed_over() {
    let (first, last) = (-100_000, -100_000 + 7 * (PAGE + 5));
    let pool = pool(&format!(
        "{ITEMS} INSERT INTO items SELECT generate_series({first}, {last}, 7);
         INSERT INTO items VALUES (-9223372036854775808), (9223372036854775807);"
    ))
    .await;
    let mut ids: Vec<i64> = (first..=last).step_by(7).collect();
    ids.insert(0, i64::MIN);
    ids.push(i64::MAX);
    has_exactly(&table::<i64>(&pool, "items", "id"), ids).await;
}

#[tokio::test]
async fn text_bytes_and_narrow_keys_are_handed_over() {
    let pool = pool(
        "CREATE TABLE codes (code text PRIMARY KEY, short varchar(9) UNIQUE, number int UNIQUE,
           tiny smallint UNIQUE, raw bytea UNIQUE);
         INSERT INTO codes VALUES ('', 'b', 1, 1, ''), ('7', 'B', -2, -32768, '\\x00'),
           ('007', 'b ', 3, 3, '\\xff'), ('é', 'ß', 4, 4, '\\x0001');",
    )
    .await;
    let texts = |texts: [&str; 4]| texts.map(str::to_owned).to_vec();
    let source = table::<String>(&pool, "codes", "code");
    has_exactly(&source, texts(["", "007", "7", "é"])).await;
    let source = table::<String>(&pool, "public.codes", "short");
    has_exactly(&source, texts(["B", "b", "b ", "ß"])).await;
    has_exactly(&table::<i32>(&pool, "codes", "number"), vec![-2, 1, 3, 4]).await;
    has_exactly(&table::<i16>(&pool, "codes", "tiny"), vec![i16::MIN, 1, 3, 4]).await;
    let bytes: [&[u8]; 4] = [b"", b"\0", b"\0\x01", b"\xff"];
    let source = table::<Vec<u8>>(&pool, "codes", "raw");
    has_exactly(&source, bytes.map(<[u8]>::to_vec).to_vec()).await;
}

/// Pages are cut where the database's own order says, whichever that is.
#[tokio::test]
async fn text_keys_of_many_pages_are_handed_over_in_any_collation() {
    for collation in ["\"C\"", "\"und-x-icu\"", "\"en-US-x-icu\""] {
        let pool = pool(&format!(
            "CREATE TABLE codes (code text COLLATE {collation} PRIMARY KEY);
             INSERT INTO codes SELECT CASE i % 4 WHEN 0 THEN 'A' WHEN 1 THEN 'a' WHEN 2 THEN 'é'
               ELSE '-a' END || md5(i::text) FROM generate_series(1, {}) i",
            PAGE + 100
        ))
        .await;
        let source = table::<String>(&pool, "codes", "code");
        let sql = "SELECT code FROM codes ORDER BY code";
        let codes: Vec<String> = sqlx::query_scalar(sql).fetch_all(&pool).await.unwrap();
        has_exactly(&source, codes).await;
    }
}

#[tokio::test]
async fn names_are_quoted_whatever_they_hold() {
    let pool = pool(
        r#"CREATE SCHEMA "Shop"; CREATE TABLE "Shop"."sel;ect ""x""" ("or'der -- " int UNIQUE);
           INSERT INTO "Shop"."sel;ect ""x""" VALUES (1), (2), (NULL), (NULL);"#,
    )
    .await;
    let source = table::<i32>(&pool, r#"Shop.sel;ect "x""#, "or'der -- ");
    has_exactly(&source, vec![1, 2]).await;
    assert!(PgTable::<i64>::new(pool.clone(), "", "id").is_err());
    assert!(PgTable::<i64>::new(pool, "items", "").is_err());
}

#[tokio::test]
async fn case_35_a_table_a_column_or_a_type_that_is_not_there_is_an_error() {
    let pool = pool(&format!("{ITEMS} INSERT INTO items VALUES (1)")).await;
    for (name, column) in [("no_items", "id"), ("items", "no_id"), ("no.items", "id")] {
        let source = table::<i64>(&pool, name, column);
        assert!(source.count().await.is_err(), "{name}.{column}");
        let scanned = Scanned::resume_from(&source, ScanFrom::Start).await;
        assert!(scanned.unwrap_err().to_string().contains(name));
    }
    for source in
        [&table::<i32>(&pool, "items", "id") as &dyn Source, &table::<String>(&pool, "items", "id")]
    {
        assert!(Scanned::resume_from(source, ScanFrom::Start).await.is_err());
    }
}

/// Two pages and a bit, on a pool whose connections have this name.
async fn large_table(server: &PostgresServer, name: &str) -> PgPool {
    let url = format!("{}&application_name={name}", server.create_database());
    let pool = PgPoolOptions::new().max_connections(2).connect(&url).await.unwrap();
    let rows = 2 * PAGE + 10;
    run(&pool, &format!("{ITEMS} INSERT INTO items SELECT generate_series(1, {rows})")).await;
    pool
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_35_a_scan_whose_backend_is_killed_within_a_query_fails_and_is_resumed_by_filling() {
    let server = PostgresServer::shared();
    let pool = large_table(server, "killed").await;
    let url = pool.connect_options();
    let database = server.url_for(url.get_database().unwrap());
    let source = table::<i64>(&pool, "items", "id");
    // A lock that is taken after the first page holds the second one up; whoever waits for it is
    // killed. Twice, then the lock goes.
    let locking = PgPoolOptions::new()
        .max_connections(2)
        .connect_with((*url).clone().application_name("locking"))
        .await
        .unwrap();
    let (progress, clock) = (Progress::default(), Clock::system());
    let mut keys = Vec::new();
    let (reached, mut first_page) = tokio::sync::mpsc::unbounded_channel();
    let insert = |key: &[u8]| {
        keys.push(KeyBytes::of(&key.to_vec()));
        if keys.len() == PAGE as usize / 2 {
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
    let meddling = tokio::spawn(async move {
        let lock = first_page.recv().await.unwrap();
        let mut holder = locking.acquire().await.unwrap();
        sqlx::raw_sql(lock).execute(&mut *holder).await.unwrap();
        let mut killed = 0_i64;
        let end = Instant::now() + CEILING;
        while killed < 2 {
            assert!(Instant::now() < end, "nobody waits for the lock");
            let kill = "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid))
                FROM pg_stat_activity
                WHERE application_name = 'killed' AND wait_event_type = 'Lock'";
            killed += sqlx::query_scalar::<_, i64>(kill).fetch_one(&locking).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        sqlx::raw_sql("ROLLBACK").execute(&mut *holder).await.unwrap();
    });
    let _end = tokio::time::timeout(CEILING, filling).await.unwrap();
    meddling.await.unwrap();
    // It went on after the first page: every key once.
    assert!(keys == bytes_of(1..=2 * PAGE + 10), "{} keys", keys.len());
}

#[tokio::test]
async fn case_35_a_scan_that_runs_into_the_statement_time_out_fails_and_is_resumed_by_filling() {
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
    let error = Scanned::resume_from(&source, ScanFrom::Start).await.unwrap_err();
    let below = std::error::Error::source(&error).unwrap().to_string();
    assert!(below.contains("statement timeout"), "{below}");

    let progress = Progress::default();
    let (mut seen, clock) = (vec![false; 2 * PAGE as usize + 11], Clock::system());
    let insert = |key: &[u8]| seen[u64::from_le_bytes(key.try_into().unwrap()) as usize] = true;
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
    assert!(seen[1..].iter().all(|seen| *seen));
    assert_eq!(progress.last_error(), None);
}

#[tokio::test]
async fn case_38_settling_waits_for_the_transactions_of_its_time_and_not_for_later_ones() {
    // A server of its own: other tests' transactions would hold it up.
    let server = PostgresServer::start();
    let pool = PgPoolOptions::new().max_connections(5).connect(&server.url()).await.unwrap();
    run(&pool, ITEMS).await;
    let source = table::<i64>(&pool, "items", "id");
    let mut early = pool.begin().await.unwrap();
    let insert = "INSERT INTO items VALUES (100)";
    sqlx::query(insert).execute(&mut *early).await.unwrap();
    let quiescing = {
        let source = table::<i64>(&pool, "items", "id");
        tokio::spawn(async move { source.quiesce().await })
    };
    // Much longer than the second that it waits in any case.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert!(!quiescing.is_finished(), "quiesced while a transaction was open");
    let mut late = pool.begin().await.unwrap();
    let insert = "INSERT INTO items VALUES (101)";
    sqlx::query(insert).execute(&mut *late).await.unwrap();
    early.commit().await.unwrap();
    let quiesced = tokio::time::timeout(CEILING, quiescing).await.unwrap().unwrap();
    assert_eq!(quiesced.unwrap(), Quiesced::Drained);
    has_exactly(&source, vec![100]).await;
    late.commit().await.unwrap();
    has_exactly(&source, vec![100, 101]).await;
}

#[tokio::test]
async fn case_38_settling_waits_for_a_transaction_among_many_that_end() {
    let server = PostgresServer::start();
    let pool = PgPoolOptions::new().max_connections(5).connect(&server.url()).await.unwrap();
    run(&pool, ITEMS).await;
    let mut early = pool.begin().await.unwrap();
    let insert = "INSERT INTO items VALUES (-1)";
    sqlx::query(insert).execute(&mut *early).await.unwrap();
    for id in 0..5 {
        run(&pool, &format!("INSERT INTO items VALUES ({id})")).await;
    }
    let quiescing = {
        let source = table::<i64>(&pool, "items", "id");
        tokio::spawn(async move { source.quiesce().await })
    };
    tokio::time::sleep(Duration::from_millis(2_000)).await;
    assert!(!quiescing.is_finished());
    // A rollback ends it as well as a commit does.
    early.rollback().await.unwrap();
    let quiesced = tokio::time::timeout(CEILING, quiescing).await.unwrap().unwrap();
    assert_eq!(quiesced.unwrap(), Quiesced::Drained);
}

#[tokio::test]
async fn settling_an_idle_server_needs_nobody_elses_transactions() {
    let server = PostgresServer::start();
    let pool = PgPoolOptions::new().max_connections(5).connect(&server.url()).await.unwrap();
    run(&pool, ITEMS).await;
    // Readers don't hold it up.
    let mut reader = pool.begin().await.unwrap();
    sqlx::query("SELECT count(*) FROM items").execute(&mut *reader).await.unwrap();
    let source = table::<i64>(&pool, "items", "id");
    let quiesced = tokio::time::timeout(CEILING, source.quiesce()).await.unwrap();
    assert_eq!(quiesced.unwrap(), Quiesced::Drained);
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
    assert!(Scanned::resume_from(&source, ScanFrom::Start).await.is_err());
}
