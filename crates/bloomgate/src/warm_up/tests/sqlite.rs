//! SQLite tables as sources.

use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, SqlitePool};

use super::super::SqliteTable;
use super::scanned::{Scanned, has_exactly, scan_error};
use crate::ports::{Quiesced, Source};
use crate::sql::{SqlDatabase, SqlKey};

const PAGE: i64 = <sqlx::Sqlite as SqlDatabase>::PAGE as i64;

pub(super) async fn pool(sql: &str) -> (tempfile::TempDir, SqlitePool) {
    let folder = testbed::temp_folder();
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("test.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_secs(20));
    let pool = SqlitePoolOptions::new().max_connections(4).connect_with(options).await.unwrap();
    run(&pool, sql).await;
    (folder, pool)
}

async fn run(pool: &SqlitePool, sql: &str) {
    let sql = AssertSqlSafe(sql.to_owned());
    sqlx::raw_sql(sql).execute(pool).await.unwrap();
}

fn table<K: SqlKey<sqlx::Sqlite>>(pool: &SqlitePool, table: &str, column: &str) -> SqliteTable<K> {
    SqliteTable::new(pool.clone(), table, column).unwrap()
}

/// Inserts `count` ids: `first`, `first + step`, ….
fn numbers(first: i64, step: i64, count: i64) -> String {
    format!(
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {count})
         INSERT INTO items SELECT {first} + i * {step} FROM n WHERE {count} > 0;"
    )
}

const ITEMS: &str = "CREATE TABLE items (id INTEGER PRIMARY KEY);";

#[tokio::test]
async fn every_row_is_handed_over_at_every_number_of_pages() {
    for rows in [0, 1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE] {
        let (_folder, pool) = pool(&format!("{ITEMS} {}", numbers(1, 1, rows))).await;
        has_exactly(&table::<i64>(&pool, "items", "id"), (1..=rows).collect()).await;
    }
}

#[tokio::test]
async fn case_38_gaps_and_negative_ids_are_passed_over_and_handed_over() {
    let insert = numbers(-3 * PAGE, 7, PAGE + 5);
    let extremes = "INSERT INTO items VALUES (-9223372036854775808), (9223372036854775807);";
    let (_folder, pool) = pool(&format!("{ITEMS} {insert} {extremes}")).await;
    let mut ids: Vec<i64> = (0..PAGE + 5).map(|i| -3 * PAGE + 7 * i).collect();
    ids.insert(0, i64::MIN);
    ids.push(i64::MAX);
    has_exactly(&table::<i64>(&pool, "items", "id"), ids).await;
}

#[tokio::test]
async fn text_and_narrow_keys_are_handed_over() {
    let (_folder, pool) = pool(
        "CREATE TABLE codes (code TEXT PRIMARY KEY, number INT UNIQUE, raw BLOB UNIQUE);
         INSERT INTO codes VALUES ('', 1, x''), ('7', -2, x'00'), ('007', 3, x'ff'),
           ('a' || char(0) || 'b', 4, x'0001'), ('é', 5, x'61')",
    )
    .await;
    let texts = ["", "007", "7", "a\0b", "é"].map(str::to_owned);
    has_exactly(&table::<String>(&pool, "codes", "code"), texts.to_vec()).await;
    has_exactly(&table::<i32>(&pool, "codes", "number"), vec![-2, 1, 3, 4, 5]).await;
    let bytes: [&[u8]; 5] = [b"", b"\0", b"\0\x01", b"a", b"\xff"];
    let bytes = bytes.map(<[u8]>::to_vec);
    has_exactly(&table::<Vec<u8>>(&pool, "codes", "raw"), bytes.to_vec()).await;
}

#[tokio::test]
async fn names_are_quoted_whatever_they_hold() {
    let (_folder, pool) = pool(
        r#"CREATE TABLE "sel;ect ""x""" ("or'der -- " INTEGER PRIMARY KEY);
           INSERT INTO "sel;ect ""x""" VALUES (1), (2);"#,
    )
    .await;
    let source = table::<i64>(&pool, r#"sel;ect "x""#, "or'der -- ");
    has_exactly(&source, vec![1, 2]).await;
    has_exactly(&table::<i64>(&pool, r#"main.sel;ect "x""#, "or'der -- "), vec![1, 2]).await;
    assert!(SqliteTable::<i64>::new(pool.clone(), "", "id").is_err());
    assert!(SqliteTable::<i64>::new(pool, "items", "a\0b").is_err());
}

#[tokio::test]
async fn null_keys_are_passed_over() {
    let (_folder, pool) = pool(
        "CREATE TABLE items (id INTEGER PRIMARY KEY, code TEXT UNIQUE, number INT UNIQUE);
         INSERT INTO items VALUES (1, NULL, NULL), (2, 'b', 0), (3, NULL, NULL), (4, 'a', -1);",
    )
    .await;
    let texts = vec!["a".to_owned(), "b".to_owned()];
    has_exactly(&table::<String>(&pool, "items", "code"), texts).await;
    has_exactly(&table::<i64>(&pool, "items", "number"), vec![-1, 0]).await;
}

#[tokio::test]
async fn case_35_a_table_or_a_column_that_is_not_there_is_an_error() {
    let (_folder, pool) = pool("CREATE TABLE items (id TEXT PRIMARY KEY);").await;
    run(&pool, "INSERT INTO items VALUES ('a'), ('b')").await;
    for (name, column) in [("no_items", "id"), ("items", "no_id"), ("no.items", "id")] {
        let source = table::<String>(&pool, name, column);
        assert!(source.count().await.is_err(), "{name}.{column}");
        let error = scan_error(&source).await;
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[tokio::test]
async fn case_35_a_row_that_does_not_decode_is_an_error_and_not_passed_over() {
    // A column of SQLite takes values of any type.
    let (_folder, pool) = pool(
        "CREATE TABLE items (number INT UNIQUE, code TEXT UNIQUE);
         INSERT INTO items VALUES (1, 'a'), (2, 'b'), ('three', x'ff'), (4, 'd');",
    )
    .await;
    scan_error(&table::<i64>(&pool, "items", "number")).await;
    scan_error(&table::<String>(&pool, "items", "code")).await;
    run(&pool, "DELETE FROM items; INSERT INTO items VALUES (1.5, 'a'), (2, 'b')").await;
    scan_error(&table::<i64>(&pool, "items", "number")).await;
    run(&pool, "DELETE FROM items; INSERT INTO items VALUES (4294967301, 'a')").await;
    scan_error(&table::<i32>(&pool, "items", "number")).await;
}

#[tokio::test]
async fn rows_that_come_during_a_scan_do_not_disturb_it() {
    let (_folder, pool) = pool(&format!("{ITEMS} {}", numbers(0, 2, 2 * PAGE))).await;
    let source = table::<i64>(&pool, "items", "id");
    let inserting = tokio::spawn(async move {
        for id in 0..50 {
            let sql = format!("INSERT INTO items VALUES ({})", id * 501 * 2 + 1);
            run(&pool, &sql).await;
        }
    });
    let scanned = Scanned::all_of(&source).await;
    inserting.await.unwrap();
    let scanned: std::collections::HashSet<_> = scanned.keys.into_iter().collect();
    assert!((0..2 * PAGE).all(|i| scanned.contains(&(i * 2))));
}

#[tokio::test]
async fn quiescing_waits_for_a_write_of_another_connection_to_end() {
    let (_folder, pool) = pool(ITEMS).await;
    let source = table::<i64>(&pool, "items", "id");
    assert_eq!(source.quiesce().await.unwrap(), Quiesced::Drained);
    let mut write = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let insert = "INSERT INTO items VALUES (1)";
    sqlx::query(insert).execute(&mut *write).await.unwrap();
    let mut quiescing = Box::pin(source.quiesce());
    let early = tokio::time::timeout(Duration::from_millis(150), &mut quiescing).await;
    assert!(early.is_err(), "quiesced while a write was open");
    write.commit().await.unwrap();
    let quiesced = tokio::time::timeout(Duration::from_secs(20), quiescing).await;
    assert_eq!(quiesced.unwrap().unwrap(), Quiesced::Drained);
    // It leaves nothing locked.
    run(&pool, "INSERT INTO items VALUES (2)").await;
    has_exactly(&source, vec![1, 2]).await;
}

#[tokio::test]
async fn quiescing_fails_while_a_write_lock_stays() {
    let folder = testbed::temp_folder();
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("test.db"))
        .create_if_missing(true)
        .busy_timeout(Duration::from_millis(20));
    let pool = SqlitePoolOptions::new().connect_with(options).await.unwrap();
    run(&pool, ITEMS).await;
    let write = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let source = table::<i64>(&pool, "items", "id");
    assert!(source.quiesce().await.is_err());
    drop(write);
}
