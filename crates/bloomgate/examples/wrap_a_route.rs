//! A route of an axum service behind a guard, on SQLite.
//!
//! ```sh
//! cargo run -p bloomgate --example wrap_a_route --features axum,sqlite-bundled
//! curl -i http://127.0.0.1:3000/products/2     # 200
//! curl -i http://127.0.0.1:3000/products/7     # 404, without a query
//! curl -i -d tea http://127.0.0.1:3000/products
//! curl -i http://127.0.0.1:3000/products/4     # 200, at once
//! curl -i http://127.0.0.1:3000/readyz
//! ```

use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header::CACHE_CONTROL};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use bloomgate::{CreateError, Guard, Guarded, WriteError, loader, path_param, warm_up};
use serde::{Deserialize, Serialize};
use sqlx::SqlitePool;
use sqlx::sqlite::SqlitePoolOptions;

#[derive(Serialize, Deserialize, sqlx::FromRow)]
struct Product {
    id: i64,
    name: String,
}

#[derive(Clone)]
struct App {
    pool: SqlitePool,
    guard: Guard<i64, Product>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A database in memory lives in its one connection; a file or a server takes more of them.
    let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    sqlx::raw_sql(
        "CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
         INSERT INTO products (name) VALUES ('bread'), ('cheese'), ('wine');",
    )
    .execute(&pool)
    .await?;

    let guard: Guard<i64, Product> = Guard::builder("product")
        .source(warm_up::SqliteTable::new(pool.clone(), "products", "id")?)
        .loader(loader::SqliteLoader::table(pool.clone(), "products", "id")?)
        .build()
        .await?;

    // The handler runs only for products that exist, and gets the row.
    let show = get(|product: Guarded<Product>| async move { Json(product) });
    let read = guard.layer(path_param("id")).not_found(not_found);
    let app = Router::new()
        .route("/products/{id}", show)
        .route_layer(read)
        .route("/products", post(create))
        .route("/readyz", get(ready))
        .with_state(App { pool, guard: guard.clone() });

    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("listening on http://{}; stop with Ctrl-C", listener.local_addr()?);
    let stop = async { drop(tokio::signal::ctrl_c().await) };
    axum::serve(listener, app).with_graceful_shutdown(stop).await?;
    // Once no requests come any more, the guard waits for the writes that are still running.
    guard.shutdown(Duration::from_secs(10)).await;
    Ok(())
}

async fn create(State(app): State<App>, name: String) -> impl IntoResponse {
    let created: Result<i64, WriteError<CreateError>> = app
        .guard
        .create(|admit| async move {
            let mut tx = app.pool.begin().await?;
            let insert = "INSERT INTO products (name) VALUES (?) RETURNING id";
            let id = sqlx::query_scalar(insert).bind(name).fetch_one(&mut *tx).await?;
            let admitted = admit.key(id).await?; // from here on, no gate refuses the id
            tx.commit().await?;
            Ok((admitted, id))
        })
        .await;
    match created {
        Ok(id) => (StatusCode::CREATED, format!("/products/{id}\n")),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
    }
}

async fn ready(State(app): State<App>) -> impl IntoResponse {
    match app.guard.is_ready() {
        true => (StatusCode::OK, String::new()),
        false => (StatusCode::SERVICE_UNAVAILABLE, app.guard.unready_reason()),
    }
}

fn not_found() -> impl IntoResponse {
    (StatusCode::NOT_FOUND, [(CACHE_CONTROL, "no-store")], "no such product\n")
}
