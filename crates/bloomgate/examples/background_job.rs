//! A guard outside of HTTP: a job that reads and writes rows, on SQLite.
//!
//! ```sh
//! cargo run -p bloomgate --example background_job --features sqlite-bundled
//! ```

use std::error::Error;
use std::time::Duration;

use bloomgate::{Answer, Guard, WriteError, loader, warm_up};
use serde::{Deserialize, Serialize};
use sqlx::SqlitePool;
use sqlx::sqlite::SqlitePoolOptions;

#[derive(Serialize, Deserialize, sqlx::FromRow)]
struct Price {
    cents: i64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // A database in memory lives in its one connection; a file or a server takes more of them.
    let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    sqlx::raw_sql(
        "CREATE TABLE prices (id TEXT PRIMARY KEY NOT NULL, cents INTEGER NOT NULL);
         INSERT INTO prices VALUES ('bread', 300), ('cheese', 900);",
    )
    .execute(&pool)
    .await?;
    let guard: Guard<String, Price> = Guard::builder("price")
        .source(warm_up::SqliteTable::new(pool.clone(), "prices", "id")?)
        .loader(loader::SqliteLoader::table(pool.clone(), "prices", "id")?)
        .build()
        .await?;
    while !guard.is_ready() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    // One row.
    match guard.get(&"bread".to_owned()).await? {
        Answer::Found { value, tier, .. } => println!("bread: {} cents, {tier:?}", value.cents),
        Answer::Absent(tier) => println!("bread: no price, {tier:?}"),
    }

    // Many rows, in the order of the keys. An absent key costs no query.
    let names = ["bread", "caviar", "cheese"].map(str::to_owned);
    for (name, answer) in names.iter().zip(guard.get_many(&names).await?) {
        match answer {
            Answer::Found { value, .. } => println!("{name}: {} cents", value.cents),
            _ => println!("{name}: no price"),
        }
    }

    // A key that the job chose: an insert or an upsert.
    guard.write("wine".to_owned(), set_price(pool.clone(), "wine", 1_200)).await?;
    // A row that must exist. What the gate refuses is not even tried.
    let unknown = guard.update("caviar".to_owned(), set_price(pool.clone(), "caviar", 1)).await;
    assert!(matches!(unknown, Err(WriteError::Absent)));
    guard.delete("cheese".to_owned(), delete(pool.clone(), "cheese")).await?;

    // After changes behind the guard's back, make it forget: one key, the keys in hand that meet a
    // condition, everything. `rebuild` also finds keys that were inserted behind its back.
    set_price(pool.clone(), "bread", 350).await?;
    guard.invalidate(&"bread".to_owned()).await?;
    let forgotten = guard.invalidate_where(|name| name.starts_with('b')).await?;
    guard.invalidate_all().await?;
    guard.rebuild().await?;

    let names = ["bread", "cheese", "wine"].map(str::to_owned);
    let mut cents = Vec::new();
    for answer in guard.get_many(&names).await? {
        cents.push(match answer {
            Answer::Found { value, .. } => Some(value.cents),
            _ => None,
        });
    }
    println!("in the end: {cents:?}; {forgotten} keys were forgotten");
    assert_eq!(cents, [Some(350), None, Some(1_200)]);
    guard.shutdown(Duration::from_secs(10)).await;
    Ok(())
}

async fn set_price(pool: SqlitePool, id: &'static str, cents: i64) -> sqlx::Result<()> {
    let upsert = "INSERT INTO prices VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET cents = ?2";
    sqlx::query(upsert).bind(id).bind(cents).execute(&pool).await.map(drop)
}

async fn delete(pool: SqlitePool, id: &'static str) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM prices WHERE id = ?").bind(id).execute(&pool).await.map(drop)
}

#[test]
fn the_program_runs() -> Result<(), Box<dyn Error>> {
    main()
}
