//! Two guards and one transaction: an order is created and its article's stock goes down.
//!
//! ```sh
//! cargo run -p bloomgate --example one_transaction --features sqlite-bundled
//! ```

use std::error::Error;
use std::time::Duration;

use bloomgate::{Answer, Guard, WriteFailure as _, loader, warm_up};
use serde::{Deserialize, Serialize};
use sqlx::SqlitePool;
use sqlx::sqlite::SqlitePoolOptions;

#[derive(Serialize, Deserialize, sqlx::FromRow)]
struct Order {
    article: i64,
}

#[derive(Serialize, Deserialize, sqlx::FromRow)]
struct Stock {
    pieces: i64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // A database in memory lives in its one connection; a file or a server takes more of them.
    let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    sqlx::raw_sql(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, article INTEGER NOT NULL);
         CREATE TABLE stock (id INTEGER PRIMARY KEY, pieces INTEGER NOT NULL CHECK (pieces >= 0));
         INSERT INTO stock VALUES (30, 1);",
    )
    .execute(&pool)
    .await?;
    let orders: Guard<i64, Order> = Guard::builder("order")
        .source(warm_up::SqliteTable::new(pool.clone(), "orders", "id")?)
        .loader(loader::SqliteLoader::table(pool.clone(), "orders", "id")?)
        .build()
        .await?;
    let stock: Guard<i64, Stock> = Guard::builder("stock")
        .source(warm_up::SqliteTable::new(pool.clone(), "stock", "id")?)
        .loader(loader::SqliteLoader::table(pool.clone(), "stock", "id")?)
        .build()
        .await?;
    while !orders.is_ready() || !stock.is_ready() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    order(&orders, &stock, &pool, 1, 30).await?;
    for (id, article) in [(2, 30), (3, 31)] {
        if let Err(error) = order(&orders, &stock, &pool, id, article).await {
            println!("order {id} of article {article}: {error}");
        }
    }

    let Answer::Found { value, .. } = stock.get(&30).await? else {
        return Err("no article".into());
    };
    assert_eq!(value.pieces, 0);
    assert!(matches!(orders.get(&1).await?, Answer::Found { .. }));
    assert!(matches!(orders.get(&2).await?, Answer::Absent(_)));
    Ok(())
}

async fn order(
    orders: &Guard<i64, Order>,
    stock: &Guard<i64, Stock>,
    pool: &SqlitePool,
    id: i64,
    article: i64,
) -> Result<(), Box<dyn Error>> {
    // Begin first, in both. The article must exist: an unknown one is refused without a query.
    let article_write = stock.begin_existing(article).await?;
    let order_write = orders.begin(id).await?;
    let time = order_write.time_left();
    let written = tokio::time::timeout(time, transaction(pool, id, article)).await;
    // If it isn't known whether it committed, both keys stay uncached until the window is over.
    if written.as_ref().is_ok_and(|run| run.as_ref().err().is_none_or(|e| e.outcome_is_known())) {
        order_write.end().await?;
        article_write.end().await?;
    }
    Ok(written??)
}

async fn transaction(pool: &SqlitePool, id: i64, article: i64) -> sqlx::Result<()> {
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    let take = "UPDATE stock SET pieces = pieces - 1 WHERE id = ?";
    sqlx::query(take).bind(article).execute(&mut *tx).await?;
    let add = "INSERT INTO orders (id, article) VALUES (?, ?)";
    sqlx::query(add).bind(id).bind(article).execute(&mut *tx).await?;
    tx.commit().await
}

#[test]
fn the_program_runs() -> Result<(), Box<dyn Error>> {
    main()
}
