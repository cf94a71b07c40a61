//! The database without a guard: the baseline of every comparison.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde_json::{Value, json};

use crate::catalogue::CatalogueError;
use crate::database::Database;
use crate::product::{Product, ProductId};

/// The same budget that the guard gives a load.
const LOAD_TIMEOUT: Duration = Duration::from_secs(2);

/// Every read asks the database, and is counted.
#[derive(Clone)]
pub(crate) struct Unguarded {
    database: Database,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    loads: AtomicU64,
    found: AtomicU64,
    absent: AtomicU64,
    errors: AtomicU64,
    timeouts: AtomicU64,
    running: AtomicU64,
}

/// Counts a query that runs, also when its client goes away.
struct Running<'a>(&'a Counts);

impl<'a> Running<'a> {
    fn count(counts: &'a Counts) -> Self {
        counts.loads.fetch_add(1, Relaxed);
        counts.running.fetch_add(1, Relaxed);
        Self(counts)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
    }
}

impl Unguarded {
    pub(crate) fn new(database: Database) -> Self {
        Self { database, counts: Arc::default() }
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// Asks the database.
    pub(crate) async fn read(&self, id: ProductId) -> Result<Option<Product>, CatalogueError> {
        let counts = &*self.counts;
        let _running = Running::count(counts);
        let (count, answer) = match tokio::time::timeout(LOAD_TIMEOUT, self.database.find(id)).await
        {
            Ok(Ok(Some(product))) => (&counts.found, Ok(Some(product))),
            Ok(Ok(None)) => (&counts.absent, Ok(None)),
            Ok(Err(_told_by_the_database)) => (&counts.errors, Err(CatalogueError::Unavailable)),
            Err(_elapsed) => (&counts.timeouts, Err(CatalogueError::Unavailable)),
        };
        count.fetch_add(1, Relaxed);
        answer
    }

    /// A document of the same shape as the guard's.
    pub(crate) fn status(&self) -> Value {
        let Counts { loads, found, absent, errors, timeouts, running } = &*self.counts;
        json!({
            "enabled": false,
            "name": "product",
            "gate": {
                "state": "open",
                "reason": "forced",
                "detail": "there is no guard",
                "generation": 0,
                "family": "none",
                "items": 0,
                "distinct": null,
                "capacity": null,
                "fill_ratio": 0.0,
                "expected_false_positive_rate": 0.0,
                "current_false_positive_rate": 0.0,
                "bytes": 0,
                "building": false,
            },
            "counts": {
                "refused": 0,
                "passed_maybe": 0,
                "passed_unknown": 0,
                "local": {"value_hits": 0, "null_hits": 0, "misses": 0},
                "shared": {
                    "value_hits": 0, "null_hits": 0, "misses": 0, "errors": 0, "undecodable": 0,
                },
                "loader": {
                    "loads": loads.load(Relaxed),
                    "found": found.load(Relaxed),
                    "absent": absent.load(Relaxed),
                    "errors": errors.load(Relaxed),
                    "timeouts": timeouts.load(Relaxed),
                    "shed": 0,
                    "panics": 0,
                },
                "nulls_stored": {"local": 0, "shared": 0},
                "stale_served": 0,
                "writes_ended": 0,
                "writes_unknown": 0,
                "writes_refused": 0,
                "writes_without_intent": 0,
            },
            "in_flight": {"loads": running.load(Relaxed), "writes": 0},
            "guarded_routes": 0,
            "warm_up_error": null,
            "shared_cache_error": null,
        })
    }
}
