//! PostgreSQL tables as sources.

mod failures;
mod quiesce;

use std::time::Duration;

use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, PgPool};
use testbed::PostgresServer;

use super::super::PgTable;
use super::scanned::{has_exactly, scan_error};
use crate::ports::Source;
use crate::sql::{SqlDatabase, SqlKey};

const PAGE: i64 = <sqlx::Postgres as SqlDatabase>::PAGE as i64;
const CEILING: Duration = Duration::from_secs(60);

pub(super) async fn pool(sql: &str) -> PgPool {
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

fn table<K: SqlKey<sqlx::Postgres>>(pool: &PgPool, table: &str, column: &str) -> PgTable<K> {
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

/// Pages end where the database's own order ends them, whatever the collation.
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
        let error = scan_error(&source).await;
        assert!(error.to_string().contains(name), "{error}");
    }
    scan_error(&table::<i32>(&pool, "items", "id")).await;
    scan_error(&table::<String>(&pool, "items", "id")).await;
}
