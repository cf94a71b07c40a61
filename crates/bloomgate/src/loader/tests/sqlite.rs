//! SQLite: only a completed query without a row is an absence.

use std::time::Duration;

use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use super::super::SqliteLoader;
use crate::ports::Loader as _;

#[derive(Debug, PartialEq, sqlx::FromRow)]
struct Row {
    id: i64,
    name: String,
}

const BY_ID: &str = "SELECT id, name FROM items WHERE id = ?1";

async fn pool(connections: u32) -> (tempfile::TempDir, SqlitePool) {
    let folder = testbed::temp_folder();
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("items.db"))
        .create_if_missing(true);
    let pool = SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_secs(3))
        .connect_with(options)
        .await
        .unwrap();
    let make = "CREATE TABLE items (id INTEGER PRIMARY KEY, name);
        INSERT INTO items VALUES (1, 'one'), (2, x'ff00'), (3, NULL), (-4, '');";
    sqlx::raw_sql(make).execute(&pool).await.unwrap();
    (folder, pool)
}

async fn load(loader: &SqliteLoader<Row>, id: i64) -> Result<Option<Row>, sqlx::Error> {
    loader.load(&id).await
}

#[tokio::test]
async fn rows_are_found_or_not() {
    let (_folder, pool) = pool(2).await;
    let loader = SqliteLoader::<Row>::new(pool, BY_ID);
    let one = load(&loader, 1).await.unwrap().unwrap();
    assert_eq!((one.id, &*one.name), (1, "one"));
    assert_eq!(load(&loader, -4).await.unwrap().unwrap().name, "");
    for absent in [0, 5, i64::MAX, i64::MIN] {
        assert_eq!(load(&loader, absent).await.unwrap(), None);
    }
}

#[tokio::test]
async fn case_27_a_row_that_does_not_decode_is_an_error() {
    let (_folder, pool) = pool(2).await;
    let loader = SqliteLoader::<Row>::new(pool, BY_ID);
    assert!(load(&loader, 2).await.is_err());
    // The driver reads a NULL as an empty text. At least it is a row.
    assert!(!matches!(load(&loader, 3).await, Ok(None)));
}

#[tokio::test]
async fn case_27_an_exhausted_pool_is_an_error_and_then_the_row_is_found() {
    let (_folder, pool) = pool(1).await;
    let taken = pool.acquire().await.unwrap();
    let loader = SqliteLoader::<Row>::new(pool, BY_ID);
    let error = load(&loader, 1).await.unwrap_err();
    assert!(matches!(error, sqlx::Error::PoolTimedOut), "{error}");
    drop(taken);
    assert!(load(&loader, 1).await.unwrap().is_some());
}

#[tokio::test]
async fn case_27_a_missing_table_and_a_closed_pool_are_errors() {
    let (_folder, pool) = pool(1).await;
    let loader =
        SqliteLoader::<Row>::new(pool.clone(), "SELECT id, name FROM no_items WHERE id = ?1");
    assert!(load(&loader, 1).await.is_err());
    let loader = SqliteLoader::<Row>::new(pool.clone(), BY_ID);
    pool.close().await;
    assert!(load(&loader, 1).await.is_err());
}

#[tokio::test]
async fn case_44_text_keys_are_bound_as_text() {
    let (_folder, pool) = pool(1).await;
    let make = "CREATE TABLE codes (code TEXT PRIMARY KEY);
        INSERT INTO codes VALUES ('7'), ('a' || char(0) || 'b'), ('é')";
    sqlx::raw_sql(make).execute(&pool).await.unwrap();
    let sql = "SELECT code FROM codes WHERE code = ?1";
    let loader = SqliteLoader::<(String,)>::new(pool, sql);
    for (key, exists) in [
        ("7", true),
        ("007", false),
        ("7.0", false),
        (" 7", false),
        ("a\0b", true),
        ("a", false),
        ("é", true),
        ("e\u{301}", false),
        ("", false),
    ] {
        let row = loader.load(&key.to_owned()).await.unwrap();
        assert_eq!(row, exists.then(|| (key.to_owned(),)), "{key:?}");
    }
}
