//! An app's test without servers: a source, a loader and a shared cache in memory, no socket.
//!
//! ```sh
//! cargo run -p bloomgate --example test_without_servers --features axum,testing
//! ```

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use bloomgate::shared_cache::MemoryStore;
use bloomgate::{Clock, Guard, Guarded, loader, path_param, warm_up};
use tower::ServiceExt as _;

/// The app, as it also stands before the real database.
fn app(guard: &Guard<i64, String>) -> Router {
    Router::new()
        .route("/names/{id}", get(|name: Guarded<String>| async move { Json(name) }))
        .route_layer(guard.layer(path_param("id")))
}

/// A table in memory that counts its queries.
#[derive(Clone, Default)]
struct Table(Arc<Mutex<BTreeMap<i64, String>>>, Arc<AtomicU64>);

impl Table {
    fn insert(&self, id: i64, name: &str) -> Result<(), Infallible> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(id, name.to_owned());
        Ok(())
    }

    fn name(&self, id: i64) -> Option<String> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let table = Table::default();
    table.insert(1, "one")?;

    // The guard's time moves only when the test says so; the store's, too.
    let (clock, hand) = Clock::manual();
    let rows = table.clone();
    let guard: Guard<i64, String> = Guard::builder("names")
        .source(warm_up::Keys::new([1]))
        .loader(loader::from_fn(move |id| {
            let name = rows.name(id);
            async move { Ok::<_, Infallible>(name) }
        }))
        .store(MemoryStore::new(clock.clone()))
        .single_instance()
        .single_instance()
        .clock(clock)
        .build()
        .await?;
    while !guard.is_ready() {
        tokio::task::yield_now().await;
    }
    let app = app(&guard);

    // The row is loaded once, an absent id never.
    assert_eq!(ask(&app, "/names/1").await?, (StatusCode::OK, "\"one\"".to_owned()));
    assert_eq!(ask(&app, "/names/1").await?.0, StatusCode::OK);
    assert_eq!(ask(&app, "/names/2").await?.0, StatusCode::NOT_FOUND);
    assert_eq!(table.1.load(Ordering::Relaxed), 1);

    // A row that was written through the guard is found at once.
    let rows = table.clone();
    guard.write(2, async move { rows.insert(2, "two") }).await?;
    assert_eq!(ask(&app, "/names/2").await?, (StatusCode::OK, "\"two\"".to_owned()));

    // A row expires after its time to live, here without waiting for it.
    hand.advance(Duration::from_secs(31 * 60));
    assert_eq!(ask(&app, "/names/1").await?.0, StatusCode::OK);
    assert_eq!(table.1.load(Ordering::Relaxed), 3);
    println!("every answer was as expected");
    Ok(())
}

async fn ask(app: &Router, path: &str) -> Result<(StatusCode, String), Box<dyn Error>> {
    let response = app.clone().oneshot(Request::get(path).body(Body::empty())?).await?;
    let status = response.status();
    Ok((status, String::from_utf8(to_bytes(response.into_body(), 1 << 20).await?.to_vec())?))
}

#[test]
fn the_program_runs() -> Result<(), Box<dyn Error>> {
    main()
}
