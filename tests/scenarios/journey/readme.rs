//! The README's code compiles: it stands here, word for word.

#[derive(serde::Serialize, serde::Deserialize, sqlx::FromRow)]
struct Product {
    id: i64,
    name: String,
}

mod wrap_a_route {
    use super::Product;

    use axum::{Json, Router, http::StatusCode, routing::get};
    use bloomgate::{Gate, Guard, Guarded, RedisStore, Secret, loader, path_param, warm_up};

    async fn app(pool: sqlx::PgPool) -> Result<Router, Box<dyn std::error::Error>> {
        let guard: Guard<i64, Product> = Guard::builder("product")
            .gate(Gate::bloom().false_positive_rate(0.001))
            .secret(Secret::from_env("BLOOMGATE_SECRET")?)
            .source(warm_up::PgTable::<i64>::new(pool.clone(), "products", "id")?)
            .loader(loader::PgLoader::new(pool, "SELECT id, name FROM products WHERE id = $1"))
            .store(RedisStore::open("redis://127.0.0.1")?) // optional
            .build()
            .await?;
        // The handler runs only for products that exist, and gets the row.
        let show = get(|product: Guarded<Product>| async move { Json(product) });
        Ok(Router::new().route("/products/{id}", show).route_layer(
            guard.layer(path_param("id")).not_found(|| (StatusCode::NOT_FOUND, "no such product")),
        ))
    }
}

enum Failed {
    Database(sqlx::Error),
    Admit(bloomgate::AdmitError),
}

impl From<sqlx::Error> for Failed {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<bloomgate::AdmitError> for Failed {
    fn from(error: bloomgate::AdmitError) -> Self {
        Self::Admit(error)
    }
}

impl bloomgate::WriteFailure for Failed {
    fn outcome_is_known(&self) -> bool {
        match self {
            Self::Database(error) => error.outcome_is_known(),
            Self::Admit(_) => true,
        }
    }
}

async fn create(
    guard: bloomgate::Guard<i64, Product>,
    pool: sqlx::PgPool,
    name: String,
) -> Result<i64, bloomgate::WriteError<Failed>> {
    let id = guard
        .create(|admit| async move {
            let mut tx = pool.begin().await?;
            let id: i64 =
                sqlx::query_scalar("INSERT INTO products (name) VALUES ($1) RETURNING id")
                    .bind(name)
                    .fetch_one(&mut *tx)
                    .await?;
            let admitted = admit.key(id).await?; // from here on, no gate refuses the id
            tx.commit().await?;
            Ok((admitted, id))
        })
        .await?;
    Ok(id)
}

/// Code without its layout: what the formatter may do to it doesn't count.
fn bare(code: &str) -> String {
    code.chars().filter(|c| !c.is_whitespace() && *c != ',').collect()
}

#[test]
fn every_rust_block_of_the_readme_stands_in_this_file() {
    let here = bare(include_str!("readme.rs"));
    let readme = include_str!("../../../README.md");
    let blocks: Vec<&str> =
        readme.split("```rust\n").skip(1).filter_map(|after| after.split("```").next()).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        assert!(here.contains(&bare(block)), "the README's code is not compiled:\n{block}");
    }
}
