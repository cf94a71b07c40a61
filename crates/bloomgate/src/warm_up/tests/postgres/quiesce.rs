//! Waiting for the end of earlier transactions of PostgreSQL.

use std::time::Duration;

use sqlx::postgres::PgPoolOptions;
use testbed::PostgresServer;

use super::super::scanned::has_exactly;
use super::{CEILING, ITEMS, run, table};
use crate::ports::{Quiesced, Source};

#[tokio::test]
async fn case_38_quiescing_waits_for_transactions_begun_before_it_and_not_for_later_ones() {
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
async fn case_38_quiescing_waits_for_an_early_transaction_while_later_ones_end() {
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
async fn quiescing_an_idle_server_ends() {
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
