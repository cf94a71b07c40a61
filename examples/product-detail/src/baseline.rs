//! The baseline of every comparison: the database without a guard.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bloomgate::telemetry::{GateState, Status};

use crate::catalogue::CatalogueError;
use crate::database::Database;
use crate::product::{Product, ProductId};

/// The same budget that the guard gives a load.
const LOAD_TIMEOUT: Duration = Duration::from_secs(2);

/// Every read asks the database, and is counted.
#[derive(Clone)]
pub(crate) struct Baseline {
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

impl Baseline {
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
            Ok(Err(_logged)) => (&counts.errors, Err(CatalogueError::Unavailable)),
            Err(_elapsed) => (&counts.timeouts, Err(CatalogueError::Unavailable)),
        };
        count.fetch_add(1, Relaxed);
        answer
    }

    /// The status document of a guard that isn't there: the loads are counted, nothing is refused.
    pub(crate) fn status(&self) -> Status {
        let Counts { loads, found, absent, errors, timeouts, running } = &*self.counts;
        let mut status = Status::default();
        status.name = "product".to_owned();
        status.ready = true;
        status.gate.state = GateState::Open;
        status.gate.reason = Some("forced".to_owned());
        status.gate.detail = Some("there is no guard".to_owned());
        status.counts.loader.loads = loads.load(Relaxed);
        status.counts.loader.found = found.load(Relaxed);
        status.counts.loader.absent = absent.load(Relaxed);
        status.counts.loader.errors = errors.load(Relaxed);
        status.counts.loader.timeouts = timeouts.load(Relaxed);
        status.in_flight.loads = running.load(Relaxed);
        status
    }
}
