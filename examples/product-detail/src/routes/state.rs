//! The state of the service over HTTP.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

use crate::app::AppState;
use crate::catalogue::Catalogue;
use crate::problem::Problem;

/// The process lives.
pub(crate) async fn healthz() -> Response {
    Json(json!({"status": "alive"})).into_response()
}

/// 200 once the database is prepared and the guard is ready, which it is with an open gate, too: see
/// [`Guard::is_ready`](bloomgate::Guard::is_ready).
pub(crate) async fn readyz(State(app): State<AppState>) -> Response {
    if let Some(reason) = app.readiness.unready_reason() {
        return Problem::try_again(reason).into_response();
    }
    if let Catalogue::Guarded(guarded) = &app.catalogue
        && !guarded.guard().is_ready()
    {
        return Problem::try_again(guarded.guard().unready_reason()).into_response();
    }
    Json(json!({"status": "ready"})).into_response()
}

/// The guard's state and counters. They show how large the table is: not for the public.
pub(crate) async fn guard(State(app): State<AppState>) -> Response {
    match &app.catalogue {
        Catalogue::Guarded(guarded) => Json(guarded.guard().status()).into_response(),
        Catalogue::Baseline(baseline) => Json(baseline.status()).into_response(),
    }
}
