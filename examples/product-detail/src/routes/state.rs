//! How the service is doing, over HTTP.

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

/// 200 once the database is prepared and the gate has been warm for the first time. It never turns
/// back: a gate that opens later must not take a fleet out of its load balancer.
pub(crate) async fn readyz(State(app): State<AppState>) -> Response {
    if let Some(why) = app.preparing.why_not() {
        return Problem::try_again(why).into_response();
    }
    if let Catalogue::Guarded(guarded) = &app.catalogue
        && !guarded.guard().is_ready()
    {
        return Problem::try_again(guarded.guard().unready_reason()).into_response();
    }
    Json(json!({"status": "ready"})).into_response()
}

/// The guard's state and counters. They tell how large the table is: not for the public.
pub(crate) async fn guard(State(app): State<AppState>) -> Response {
    match &app.catalogue {
        Catalogue::Guarded(guarded) => Json(guarded.guard().status()).into_response(),
        Catalogue::Unguarded(unguarded) => Json(unguarded.status()).into_response(),
    }
}
