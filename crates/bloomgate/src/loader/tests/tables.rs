//! Loading the rows of a table by key, one or many at a time.

use sqlx::{FromRow, Pool};

use super::super::SqlLoader;
use super::super::sql_loader::CHUNK;
use crate::error::ConfigError;
use crate::ports::Loader;
use crate::sql::{SqlDatabase, SqlKey};

#[derive(Clone, Debug, PartialEq, FromRow)]
struct Item {
    id: i64,
    name: String,
}

fn item(id: i64) -> Option<Item> {
    Some(Item { id, name: format!("item {id}") })
}

/// Every third id up to 3,000 exists; 6 is deleted, 9 has no name.
const ITEMS: &str = "CREATE TABLE items (id BIGINT PRIMARY KEY, name VARCHAR(20), deleted INTEGER);
    INSERT INTO items (id, name, deleted)
      WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 3 FROM n WHERE i < 3000)
      SELECT i, CASE WHEN i = 9 THEN NULL ELSE 'item ' || i END, CASE WHEN i = 6 THEN 1 ELSE 0 END
      FROM n;";

async fn many_rows<DB>(pool: Pool<DB>)
where
    DB: SqlDatabase,
    i64: SqlKey<DB>,
    Item: for<'r> FromRow<'r, DB::Row>,
{
    let loader = SqlLoader::<DB, Item>::table(pool, "items", "id").unwrap();
    let selects = |id: i64| id % 3 == 0 && (1..=3_000).contains(&id);
    let expected = |id: &i64| selects(*id).then(|| item(*id)).flatten();
    // Around the powers of two that statements are filled up to, and more than one statement.
    for many in [0, 1, 2, 3, 4, 5, 31, 33, CHUNK, CHUNK + 1, 2 * CHUNK + 7] {
        // In no order, with repetitions, and half of the repeated ones absent.
        let ids: Vec<i64> = (0..many as i64).map(|i| 3_000 - i * 7 % 2_000).collect();
        let rows = loader.load_many(&ids).await.unwrap();
        assert_eq!(rows, ids.iter().map(expected).collect::<Vec<_>>(), "{many} keys");
        let repeated = [ids.clone(), ids].concat();
        let rows = loader.load_many(&repeated).await.unwrap();
        assert_eq!(rows, repeated.iter().map(expected).collect::<Vec<_>>());
    }
    for id in [i64::MIN, -3, 0, 3, 4, 3_000, 3_003, i64::MAX] {
        assert_eq!(loader.load(&id).await.unwrap(), expected(&id));
    }
}

async fn rows_by_position<DB>(pool: Pool<DB>)
where
    DB: SqlDatabase,
    i64: SqlKey<DB>,
    (i64, String): for<'r> FromRow<'r, DB::Row>,
{
    let loader = SqlLoader::<DB, (i64, String)>::table(pool, "items", "id").unwrap();
    let rows = loader.load_many(&[12_i64, 3, 4]).await.unwrap();
    let row = |id: i64| Some((id, format!("item {id}")));
    assert_eq!(rows, [row(12), row(3), None]);
}

async fn filtered_rows<DB>(pool: Pool<DB>)
where
    DB: SqlDatabase,
    i64: SqlKey<DB>,
    Item: for<'r> FromRow<'r, DB::Row>,
{
    let filter = "deleted = 0 OR deleted = 2 -- none has 2";
    let loader = SqlLoader::<DB, Item>::filtered_table(pool, "items", "id", filter).unwrap();
    let rows = loader.load_many(&[3_i64, 6, 7, 12]).await.unwrap();
    assert_eq!(rows, [item(3), None, None, item(12)]);
    assert_eq!(loader.load(&6_i64).await.unwrap(), None);
    assert_eq!(loader.load(&3_i64).await.unwrap(), item(3));
}

async fn statement_of_the_users_own<DB>(pool: Pool<DB>)
where
    DB: SqlDatabase,
    i64: SqlKey<DB>,
    (i64, i64): SqlKey<DB>,
    Item: for<'r> FromRow<'r, DB::Row>,
{
    let (one, two) = (DB::placeholder(1), DB::placeholder(2));
    let sql = format!("SELECT id, name FROM items WHERE id = {one}");
    let loader = SqlLoader::<DB, Item>::new(pool.clone(), sql);
    let rows = loader.load_many(&[3_i64, 7, 3]).await.unwrap();
    assert_eq!(rows, [item(3), None, item(3)]);
    let sql = format!("SELECT id, name FROM items WHERE id = {one} AND deleted = {two}");
    let loader = SqlLoader::<DB, Item>::new(pool, sql);
    let rows = loader.load_many(&[(6_i64, 1_i64), (6, 0)]).await.unwrap();
    assert_eq!(rows, [item(6), None]);
}

async fn errors<DB>(pool: Pool<DB>)
where
    DB: SqlDatabase,
    i64: SqlKey<DB>,
    (i64, i64): SqlKey<DB>,
    Item: for<'r> FromRow<'r, DB::Row>,
{
    let loader = SqlLoader::<DB, Item>::table(pool.clone(), "items", "id").unwrap();
    let composite = (3_i64, 0_i64);
    for error in [loader.load(&composite).await.err(), loader.load_many(&[composite]).await.err()] {
        let error = error.unwrap().to_string();
        assert!(error.contains("items.id names 1 columns, a key of the guard has 2"), "{error}");
    }
    let missing = SqlLoader::<DB, Item>::table(pool.clone(), "no_items", "id").unwrap();
    assert!(missing.load(&3_i64).await.is_err());
    assert!(missing.load_many(&[3_i64]).await.is_err());
    let misspelt = SqlLoader::<DB, Item>::table(pool.clone(), "items", "no_id").unwrap();
    assert!(misspelt.load(&3_i64).await.is_err());
    assert!(misspelt.load_many(&[3_i64]).await.is_err());
    for (table, columns, field) in [("", "id", "table"), ("items", "", "columns")] {
        match SqlLoader::<DB, Item>::table(pool.clone(), table, columns) {
            Err(ConfigError::Setting { field: named, .. }) => assert_eq!(named, field),
            other => panic!("{other:?}"),
        }
    }
    pool.close().await;
    assert!(loader.load_many(&[3_i64]).await.is_err());
}

const ORDERS: &str = "CREATE TABLE orders (shop VARCHAR(9), number BIGINT, name VARCHAR(9));
    INSERT INTO orders VALUES ('a', 1, 'a1'), ('a', 2, 'a2'), ('b', 1, 'b1'), ('b', NULL, 'no');";

async fn composite_keys<DB>(pool: Pool<DB>)
where
    DB: SqlDatabase,
    (String, i64): SqlKey<DB>,
    (String, i64, String): for<'r> FromRow<'r, DB::Row>,
{
    type Order = (String, i64, String);
    let columns = ["shop", "number"];
    let loader = SqlLoader::<DB, Order>::table(pool, "orders", columns).unwrap();
    let key = |shop: &str, number: i64| (shop.to_owned(), number);
    let keys = [key("b", 1), key("b", 2), key("a", 2), key("a", 1), key("b", 1)];
    let row = |shop: &str, number: i64| Some((shop.to_owned(), number, format!("{shop}{number}")));
    let rows = [row("b", 1), None, row("a", 2), row("a", 1), row("b", 1)];
    assert_eq!(loader.load_many(&keys).await.unwrap(), rows);
    for (key, row) in keys.iter().zip(&rows) {
        assert_eq!(loader.load(key).await.unwrap(), *row);
    }
}

/// The tests above for one database; `$pool` runs statements and returns what keeps the database
/// alive, and a pool of connections to it.
macro_rules! tests_of {
    ($module:ident, $pool:path) => {
        mod $module {
            use super::*;

            #[tokio::test]
            async fn many_rows_come_in_the_order_of_their_keys() {
                let (_alive, pool) = $pool(ITEMS).await;
                many_rows(pool).await;
            }

            #[tokio::test]
            async fn rows_that_are_read_by_position_begin_with_their_own_columns() {
                let (_alive, pool) = $pool(ITEMS).await;
                rows_by_position(pool).await;
            }

            #[tokio::test]
            async fn rows_outside_the_filter_are_absent() {
                let (_alive, pool) = $pool(ITEMS).await;
                filtered_rows(pool).await;
            }

            #[tokio::test]
            async fn a_statement_of_the_users_own_is_run_for_each_key() {
                let (_alive, pool) = $pool(ITEMS).await;
                statement_of_the_users_own(pool).await;
            }

            #[tokio::test]
            async fn case_27_a_wrong_key_table_or_column_is_an_error() {
                let (_alive, pool) = $pool(ITEMS).await;
                errors(pool).await;
            }

            #[tokio::test]
            async fn case_27_a_row_that_does_not_decode_is_an_error_among_many() {
                let (_alive, pool) = $pool(ITEMS).await;
                let columns = "id";
                let loader = SqlLoader::<_, (i64, i64)>::table(pool, "items", columns).unwrap();
                assert!(loader.load_many(&[3_i64, 12]).await.is_err());
            }

            #[tokio::test]
            async fn rows_of_composite_keys_are_loaded_one_or_many_at_a_time() {
                let (_alive, pool) = $pool(ORDERS).await;
                composite_keys(pool).await;
            }
        }
    };
}

#[cfg(feature = "postgres")]
async fn postgres_pool(sql: &'static str) -> ((), sqlx::PgPool) {
    let url = testbed::PostgresServer::shared().create_database();
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(2);
    let pool = pool.connect(&url).await.unwrap();
    sqlx::raw_sql(sql).execute(&pool).await.unwrap();
    ((), pool)
}

#[cfg(feature = "sqlite")]
async fn sqlite_pool(sql: &'static str) -> ((), sqlx::SqlitePool) {
    // A database in memory is its one connection's.
    let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1);
    let pool = pool.connect("sqlite::memory:").await.unwrap();
    sqlx::raw_sql(sql).execute(&pool).await.unwrap();
    ((), pool)
}

#[cfg(feature = "postgres")]
tests_of!(postgres, postgres_pool);
#[cfg(feature = "sqlite")]
tests_of!(sqlite, sqlite_pool);

/// Only the database knows which spellings it holds equal.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn case_44_rows_found_under_another_spelling_are_not_absent_among_many() {
    let (_alive, pool) = sqlite_pool(
        "CREATE TABLE codes (code TEXT COLLATE NOCASE PRIMARY KEY, name TEXT);
         INSERT INTO codes VALUES ('abc', 'first'), ('def', 'second'), ('xyz', 'third');",
    )
    .await;
    let loader = super::super::SqliteLoader::<(String, String)>::table(pool, "codes", "code");
    let loader = loader.unwrap();
    let keys = ["ABC", "def", "none", "abc"].map(str::to_owned);
    let rows = loader.load_many(&keys).await.unwrap();
    let names: Vec<Option<&str>> =
        rows.iter().map(|row| row.as_ref().map(|(_, name)| name.as_str())).collect();
    assert_eq!(names, [Some("first"), Some("second"), None, Some("first")]);
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_dropped_load_leaves_a_database_in_memory_alone() {
    let (_alive, pool) = sqlite_pool(ITEMS).await;
    let loader = super::super::SqliteLoader::<Item>::table(pool, "items", "id").unwrap();
    for id in [3_i64, 12, 15] {
        let mut load = Box::pin(loader.load(&id));
        // Polled once, so that the query is on its way.
        assert!(futures_util::FutureExt::now_or_never(&mut load).is_none());
        drop(load);
    }
    assert_eq!(loader.load(&3_i64).await.unwrap(), item(3));
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn postgres_loaders_name_their_server_without_user_and_password() {
    let pool = sqlx::PgPool::connect_lazy("postgres://bob:secret@db.example:6432/shop").unwrap();
    let table = super::super::PgLoader::<(i64,)>::table(pool.clone(), "products", "id").unwrap();
    let described = Loader::<i64, (i64,)>::describe(&table);
    assert_eq!(described, "products.id of PostgreSQL db.example:6432/shop");
    let own = super::super::PgLoader::<(i64,)>::new(pool, "SELECT 1 WHERE $1 = 2");
    let described = Loader::<i64, (i64,)>::describe(&own);
    assert_eq!(described, "PostgreSQL db.example:6432/shop");
    assert!(!format!("{table:?}{own:?}").contains("secret"));
}
