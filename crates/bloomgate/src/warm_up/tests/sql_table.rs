//! Behaviour that the tables of all databases share.

use sqlx::Pool;

use super::super::SqlTable;
use super::scanned::{Scanned, has_exactly};
use crate::error::ConfigError;
use crate::ports::{Cursor, ScanFrom, Source};
use crate::sql::{SqlDatabase, SqlKey};

/// The numbers from 1 to `last` as `n(i)`.
fn numbers(last: u32) -> String {
    format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {last})")
}

fn orders(table: &str) -> String {
    format!("CREATE TABLE {table} (shop VARCHAR(9), number BIGINT, part INTEGER, deleted INTEGER);")
}

/// Rows of two shops, the page's end among those of the second one, some keys not whole.
fn many_orders(page: u32) -> String {
    format!(
        "{} CREATE UNIQUE INDEX orders_key ON orders (shop, number);
         INSERT INTO orders (shop, number)
           {} SELECT CASE WHEN i <= {} THEN 'a' ELSE 'b' END, 2 * i FROM n;
         INSERT INTO orders VALUES (NULL, 1, 1, 0), ('b', NULL, 1, 0), ('c', NULL, 1, 0);",
        orders("orders"),
        numbers(page + 20),
        page - 5,
    )
}

async fn composite_keys_of_many_pages<DB: SqlDatabase>(pool: Pool<DB>)
where
    (String, i64): SqlKey<DB>,
{
    let last = i64::from(DB::PAGE) - 5;
    let keys = (1..=i64::from(DB::PAGE) + 20).map(|i| {
        let shop = if i <= last { "a" } else { "b" };
        (shop.to_owned(), 2 * i)
    });
    let table = SqlTable::<DB, (String, i64)>::new(pool, "orders", ["shop", "number"]).unwrap();
    has_exactly(&table, keys.collect()).await;
}

const FEW_ORDERS: &str = "INSERT INTO orders VALUES ('b', 1, 2, 0), ('a', 2, 1, 1), ('a', 1, 9, 0),
    ('a', 1, 8, 1), ('b', 1, 2, NULL), ('a', 3, NULL, 0);";

async fn composite_keys_of_three_and_four_columns<DB: SqlDatabase>(pool: Pool<DB>)
where
    (String, i64, i32): SqlKey<DB>,
    (i32, i32, String, i64): SqlKey<DB>,
{
    let key = |shop: &str, number, part| (shop.to_owned(), number, part);
    let columns = vec!["shop", "number", "part"];
    let table = SqlTable::<DB, (String, i64, i32)>::new(pool.clone(), "orders", columns).unwrap();
    let live = table.clone().filter("deleted = 0 -- and not NULL");
    has_exactly(&live, vec![key("a", 1, 9), key("b", 1, 2)]).await;
    // Without a unique index of the columns a key may repeat, and is handed over within a page.
    let all = Scanned::all_of(&table).await.keys;
    let repeated = [key("b", 1, 2), key("b", 1, 2)];
    assert_eq!(all, [&[key("a", 1, 8), key("a", 1, 9), key("a", 2, 1)], &repeated[..]].concat());

    let columns: &[&str] = &["deleted", "part", "shop", "number"];
    let table = SqlTable::<DB, (i32, i32, String, i64)>::new(pool, "orders", columns).unwrap();
    let keys = [(0, 2, "b", 1), (0, 9, "a", 1), (1, 1, "a", 2), (1, 8, "a", 1)];
    let keys = keys.map(|(deleted, part, shop, number)| (deleted, part, shop.to_owned(), number));
    has_exactly(&table, keys.to_vec()).await;
}

async fn filters<DB: SqlDatabase>(pool: Pool<DB>)
where
    i64: SqlKey<DB>,
{
    let table = || SqlTable::<DB, i64>::new(pool.clone(), "items", "id").unwrap();
    has_exactly(&table(), vec![1, 2, 3, 4]).await;
    // An OR must not escape from the condition's parentheses.
    has_exactly(&table().filter("id = 2 OR id = 4"), vec![2, 4]).await;
    has_exactly(&table().filter("id > 4"), vec![]).await;
    let wrong = table().filter("no_column IS NULL");
    assert!(Scanned::resume_from(&wrong, ScanFrom::Start).await.is_err());
    assert!(wrong.count().await.is_err());
}

const ITEMS: &str =
    "CREATE TABLE items (id BIGINT PRIMARY KEY, other BIGINT UNIQUE, code VARCHAR(9));
    INSERT INTO items VALUES (1, 4, '1'), (2, 3, '2'), (3, 2, '3'), (4, 1, '4');";

/// A cursor that named a key alone would be taken by every source of the same type of keys, which
/// would skip rows.
async fn cursors_of_other_tables<DB: SqlDatabase>(pool: Pool<DB>)
where
    i64: SqlKey<DB>,
    String: SqlKey<DB>,
{
    let table = |column: &str| SqlTable::<DB, i64>::new(pool.clone(), "items", column).unwrap();
    let (_, cursor) = Scanned::all_of(&table("id")).await.checkpoints.pop().unwrap();
    let fits = Scanned::resume_from(&table("id"), ScanFrom::After(cursor.clone())).await.unwrap();
    assert!(fits.keys.is_empty());
    let refused = async |source: &dyn Source<Key = i64>, cursor: &Cursor| {
        let scanned = Scanned::resume_from(source, ScanFrom::After(cursor.clone())).await;
        let error = scanned.unwrap_err();
        assert!(error.is_cursor_mismatch(), "{error}");
        error.to_string()
    };
    let said = refused(&table("other"), &cursor).await;
    assert!(said.contains("items.id") && said.contains("items.other"), "{said}");
    refused(&table("id").filter("id > 0"), &cursor).await;
    let foreign = Cursor::new("a position of another source").unwrap();
    refused(&table("id"), &foreign).await;
    let texts = SqlTable::<DB, String>::new(pool.clone(), "items", "code").unwrap();
    let scanned = Scanned::resume_from(&texts, ScanFrom::After(cursor)).await;
    assert!(scanned.unwrap_err().is_cursor_mismatch());
}

fn columns_are_as_many_as_the_key_has<DB: SqlDatabase>(pool: Pool<DB>)
where
    i64: SqlKey<DB>,
    (i64, i64): SqlKey<DB>,
{
    let refused = |refused: Result<(), ConfigError>| match refused {
        Err(ConfigError::Setting { field, problem, .. }) => (field, problem),
        other => panic!("{other:?}"),
    };
    let two = SqlTable::<DB, i64>::new(pool.clone(), "items", ["id", "other"]);
    let (field, problem) = refused(two.map(drop));
    assert_eq!(field, "columns");
    assert_eq!(problem, "items.(id, other) names 2 columns, a key of the guard has 1");
    let one = SqlTable::<DB, (i64, i64)>::new(pool.clone(), "items", "id");
    assert_eq!(refused(one.map(drop)).0, "columns");
    let none = SqlTable::<DB, i64>::new(pool.clone(), "items", Vec::<String>::new());
    assert_eq!(refused(none.map(drop)).0, "columns");
    let nameless = SqlTable::<DB, i64>::new(pool, "", "id");
    assert_eq!(refused(nameless.map(drop)).0, "table");
}

/// The tests above for one database; `$pool` runs statements and returns what keeps the database
/// alive, and a pool of connections to it.
macro_rules! tests_of {
    ($module:ident, $database:ty, $pool:path, $uuids:literal) => {
        mod $module {
            use super::*;

            #[tokio::test]
            async fn composite_keys_of_many_pages_are_handed_over() {
                let rows = many_orders(<$database>::PAGE);
                let (_alive, pool) = $pool(&rows).await;
                composite_keys_of_many_pages(pool).await;
            }

            #[tokio::test]
            async fn composite_keys_of_three_and_four_columns_are_handed_over() {
                let rows = orders("orders") + FEW_ORDERS;
                let (_alive, pool) = $pool(&rows).await;
                composite_keys_of_three_and_four_columns(pool).await;
            }

            #[tokio::test]
            async fn rows_outside_the_filter_are_passed_over() {
                let (_alive, pool) = $pool(ITEMS).await;
                filters(pool).await;
            }

            #[tokio::test]
            async fn a_cursor_of_another_table_column_filter_or_key_is_a_mismatch() {
                let (_alive, pool) = $pool(ITEMS).await;
                cursors_of_other_tables(pool).await;
            }

            #[tokio::test]
            async fn a_table_is_refused_unless_it_names_a_column_for_each_part_of_the_key() {
                let (_alive, pool) = $pool(ITEMS).await;
                columns_are_as_many_as_the_key_has(pool);
            }

            #[cfg(feature = "uuid")]
            #[tokio::test]
            async fn uuids_are_handed_over() {
                let (_alive, pool) = $pool($uuids).await;
                let table = SqlTable::<$database, uuid::Uuid>::new(pool, "items", "id").unwrap();
                let ids = [1_u128, 255 << 120].map(uuid::Uuid::from_u128);
                has_exactly(&table, ids.to_vec()).await;
            }
        }
    };
}

#[cfg(feature = "postgres")]
async fn postgres_pool(sql: &str) -> ((), sqlx::PgPool) {
    ((), super::postgres::pool(sql).await)
}

#[cfg(feature = "postgres")]
tests_of!(
    postgres,
    sqlx::Postgres,
    postgres_pool,
    "CREATE TABLE items (id uuid PRIMARY KEY);
     INSERT INTO items VALUES ('ff000000-0000-0000-0000-000000000000'),
       ('00000000-0000-0000-0000-000000000001')"
);

#[cfg(feature = "sqlite")]
tests_of!(
    sqlite,
    sqlx::Sqlite,
    crate::warm_up::tests::sqlite::pool,
    "CREATE TABLE items (id BLOB PRIMARY KEY);
     INSERT INTO items VALUES (x'ff000000000000000000000000000000'),
       (x'00000000000000000000000000000001')"
);

#[cfg(feature = "postgres")]
#[tokio::test]
async fn postgres_tables_name_their_server_without_user_and_password() {
    for (url, named) in [
        ("postgres://bob:secret@db.example:6432/shop", "db.example:6432/shop"),
        ("postgres://bob:secret@[::1]:6432/shop", "[::1]:6432/shop"),
        ("postgres://bob:secret@%2Frun%2Fpostgresql/shop", "/run/postgresql:5432/shop"),
    ] {
        let pool = sqlx::PgPool::connect_lazy(url).unwrap();
        let table = super::super::PgTable::<i64>::new(pool, "products", "id").unwrap();
        assert_eq!(table.describe(), format!("products.id of PostgreSQL {named}"));
        assert!(!format!("{table:?}").contains("secret"));
    }
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn sqlite_tables_name_their_file() {
    let pool = sqlx::SqlitePool::connect_lazy("sqlite:/srv/shop.db").unwrap();
    let table = super::super::SqliteTable::<i64>::new(pool, "products", "id").unwrap();
    assert_eq!(table.describe(), "products.id of SQLite /srv/shop.db");
}
