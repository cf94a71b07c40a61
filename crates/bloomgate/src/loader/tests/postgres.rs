//! PostgreSQL: only a completed query without a row is an absence.

use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use testbed::PostgresServer;

use super::super::PgLoader;
use crate::ports::Loader as _;

#[derive(Debug, PartialEq, sqlx::FromRow)]
struct Row {
    id: i64,
    name: String,
}

const BY_ID: &str = "SELECT id, name FROM items WHERE id = $1";

async fn pool_at(url: &str, connections: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_secs(3))
        .connect_lazy(url)
        .unwrap()
}

async fn pool(connections: u32) -> PgPool {
    let pool = pool_at(&PostgresServer::shared().create_database(), connections).await;
    let make = "CREATE TABLE items (id bigint PRIMARY KEY, name text);
        INSERT INTO items VALUES (1, 'one'), (3, NULL), (-4, '');
        CREATE TABLE codes (code text PRIMARY KEY);
        INSERT INTO codes VALUES ('7'), ('a'), ('ab'), ('é')";
    // A busy machine may take longer than the tests' pools wait.
    for _ in 0..20 {
        if sqlx::raw_sql(make).execute(&pool).await.is_ok() {
            return pool;
        }
    }
    panic!("no tables")
}

async fn load(loader: &PgLoader<Row>, id: i64) -> Result<Option<Row>, sqlx::Error> {
    loader.load(&id).await
}

#[tokio::test]
async fn rows_are_found_or_not() {
    let loader = PgLoader::<Row>::new(pool(2).await, BY_ID);
    let one = load(&loader, 1).await.unwrap().unwrap();
    assert_eq!((one.id, &*one.name), (1, "one"));
    assert_eq!(load(&loader, -4).await.unwrap().unwrap().name, "");
    for absent in [0, 5, i64::MAX, i64::MIN] {
        assert_eq!(load(&loader, absent).await.unwrap(), None);
    }
}

#[tokio::test]
async fn case_27_a_row_that_does_not_decode_is_an_error() {
    let pool = pool(2).await;
    let loader = PgLoader::<Row>::new(pool.clone(), BY_ID);
    assert!(load(&loader, 3).await.is_err());
    let sql = "SELECT id, id AS name FROM items WHERE id = $1";
    assert!(load(&PgLoader::<Row>::new(pool, sql), 1).await.is_err());
}

#[tokio::test]
async fn case_27_an_exhausted_pool_is_an_error_and_then_the_row_is_found() {
    let pool = pool(1).await;
    let taken = pool.acquire().await.unwrap();
    let loader = PgLoader::<Row>::new(pool, BY_ID);
    let error = load(&loader, 1).await.unwrap_err();
    assert!(matches!(error, sqlx::Error::PoolTimedOut), "{error}");
    drop(taken);
    assert!(load(&loader, 1).await.unwrap().is_some());
}

#[tokio::test]
async fn case_27_a_cancelled_query_is_an_error() {
    let pool = pool(1).await;
    let set = "SET statement_timeout = '50ms'";
    sqlx::raw_sql(set).execute(&pool).await.unwrap();
    let sql = "SELECT id, name FROM items, pg_sleep(10) WHERE id = $1";
    let error = load(&PgLoader::<Row>::new(pool.clone(), sql), 1).await.unwrap_err();
    assert!(error.to_string().contains("timeout"), "{error}");
    // A row that isn't there takes no sleep, and is absent.
    let found = load(&PgLoader::<Row>::new(pool, BY_ID), 99).await;
    assert_eq!(found.unwrap(), None);
}

#[tokio::test]
async fn case_27_a_server_that_goes_away_is_an_error_and_the_row_is_found_when_it_is_back() {
    let server = PostgresServer::start();
    server.psql("CREATE TABLE items (id bigint PRIMARY KEY, name text)");
    server.psql("INSERT INTO items VALUES (1, 'one')");
    let loader = PgLoader::<Row>::new(pool_at(&server.url(), 2).await, BY_ID);
    let found = async || {
        for _ in 0..20 {
            if let Ok(row) = load(&loader, 1).await {
                return row;
            }
        }
        panic!("no answer")
    };
    assert!(found().await.is_some());
    server.kill();
    for id in [1, 2] {
        assert!(load(&loader, id).await.is_err());
    }
    server.restart();
    assert!(found().await.is_some());
}

/// The pool would keep the connection until the server has answered the dropped query.
#[tokio::test]
async fn a_connection_whose_load_was_dropped_is_closed_and_the_next_load_gets_another_one() {
    let url = PostgresServer::shared().create_database();
    let options = PgPoolOptions::new().max_connections(1).acquire_timeout(Duration::from_secs(30));
    let pool = options.connect_lazy(&url).unwrap();
    let sleep = "SELECT $1::bigint, pg_sleep(60)::text";
    let sleeping = PgLoader::<(i64, String)>::new(pool.clone(), sleep);
    let others = PgPool::connect(&url).await.unwrap();
    let backend = "SELECT pid FROM pg_stat_activity WHERE query = $1";
    let running = async || {
        let pid = sqlx::query_scalar::<_, i32>(backend).bind(sleep);
        pid.fetch_optional(&others).await.unwrap()
    };
    let asleep = {
        let load = sleeping.load(&1);
        tokio::select! {
            answer = load => panic!("it did not sleep: {answer:?}"),
            pid = async {
                loop {
                    if let Some(pid) = running().await {
                        break pid;
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            } => pid,
        }
    };
    // The pool has one connection and waits half a minute for it; the dropped query takes a whole
    // one.
    let pid = PgLoader::<(i32,)>::new(pool, "SELECT pg_backend_pid() WHERE $1 = 1::bigint");
    let (awake,) = pid.load(&1_i64).await.unwrap().unwrap();
    assert_ne!(awake, asleep);
}

#[tokio::test]
async fn a_connection_whose_load_was_answered_is_used_again() {
    let pool = pool(1).await;
    let loader = PgLoader::<(i32,)>::new(pool, "SELECT pg_backend_pid() WHERE $1 = 1::bigint");
    let first = loader.load(&1_i64).await.unwrap();
    for absent in [1_i64, 2, 1] {
        let again = loader.load(&absent).await.unwrap();
        assert!(again.is_none() || again == first, "another connection: {again:?}");
    }
}

#[tokio::test]
async fn case_46_a_nul_in_a_text_key_is_an_error_and_no_absence() {
    let sql = "SELECT code FROM codes WHERE code = $1";
    let loader = PgLoader::<(String,)>::new(pool(1).await, sql);
    for key in ["a\0b", "\0", "a\0"] {
        assert!(loader.load(&key.to_owned()).await.is_err(), "{key:?}");
        // The connection is as good as before.
        assert!(loader.load(&"a".to_owned()).await.unwrap().is_some());
    }
    for (key, exists) in [("7", true), ("007", false), ("A", false), ("é", true)] {
        let row = loader.load(&key.to_owned()).await.unwrap();
        assert_eq!(row.is_some(), exists, "{key:?}");
    }
}
