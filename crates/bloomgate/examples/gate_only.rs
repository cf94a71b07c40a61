//! A gate alone: no value type, no loader, no cache; handlers ask their database as they did.
//!
//! ```sh
//! cargo run -p bloomgate --example gate_only --features axum
//! ```

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::routing::get;
use bloomgate::{Guard, Verdict, path_param, warm_up};
use futures_util::stream;
use tower::ServiceExt as _;

/// The database of this example, of any kind and through any client: bloomgate never sees it.
#[derive(Default)]
struct Database {
    names: Mutex<BTreeMap<u64, String>>,
    queries: AtomicU64,
}

impl Database {
    fn ids(&self) -> Vec<u64> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    fn name(&self, id: u64) -> Option<String> {
        self.queries.fetch_add(1, Ordering::Relaxed);
        self.names.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    fn insert(&self, id: u64, name: &str) -> Result<(), Infallible> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(id, name.to_owned());
        Ok(())
    }
}

async fn show(State(database): State<Arc<Database>>, Path(id): Path<u64>) -> (StatusCode, String) {
    match database.name(id) {
        Some(name) => (StatusCode::OK, name),
        None => not_found(),
    }
}

fn not_found() -> (StatusCode, String) {
    (StatusCode::NOT_FOUND, "no such name".to_owned())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let database = Arc::new(Database::default());
    (1..=3).try_for_each(|id| database.insert(id, "one of the first"))?;

    // The ids come from a closure over a stream; its end says that these were all. At a start the
    // guard waits until writes of an earlier process are over: for its write window, 30 s, unless
    // a source can tell. This database lives in this process, so there are none.
    let rows = Arc::clone(&database);
    let open = move || stream::iter(rows.ids().into_iter().map(Ok::<_, Infallible>));
    let ids = warm_up::from_stream(open).with_quiesce_of(warm_up::Keys::<u64>::new([]));
    let guard = Guard::gate_only("names").source(ids).build().await?;
    while guard.check(&99) != Verdict::Absent {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }

    let app = Router::new()
        .route("/names/{id}", get(show))
        .route_layer(guard.gate_layer(path_param("id")).not_found(not_found))
        .with_state(Arc::clone(&database));

    for id in [2, 7, 8, 9] {
        println!("GET /names/{id}: {}", ask(&app, id).await?);
    }
    println!("the database was asked {} times", database.queries.load(Ordering::Relaxed));

    // Writes go through the guard, so that the gate knows the id before it can be asked for.
    let rows = Arc::clone(&database);
    guard.write(7, async move { rows.insert(7, "the new one") }).await?;
    println!("GET /names/7: {}", ask(&app, 7).await?);
    assert_eq!(database.queries.load(Ordering::Relaxed), 2);
    Ok(())
}

async fn ask(app: &Router, id: u64) -> Result<StatusCode, Box<dyn Error>> {
    let request = Request::get(format!("/names/{id}")).body(Body::empty())?;
    Ok(app.clone().oneshot(request).await?.status())
}

#[test]
fn the_program_runs() -> Result<(), Box<dyn Error>> {
    main()
}
