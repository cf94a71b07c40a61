//! The routes, put together.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::{get, post};
use bloomgate::path_param;

use crate::catalogue::Catalogue;
use crate::database::Readiness;
use crate::problem::{Problem, product_not_found};
use crate::product::ID;
use crate::routes::{products, state};

/// Largest body, in bytes. A description of 10,000 characters fits, escapes included.
const MAX_BODY: usize = 128 * 1024;

/// What the handlers share.
#[derive(Clone)]
pub(crate) struct AppState {
    pub(crate) catalogue: Catalogue,
    pub(crate) readiness: Readiness,
}

/// The service.
pub(crate) fn router(state: AppState) -> Router {
    // The layer touches GET and HEAD only, and only this route. It answers for absent ids, and
    // hands the product of an existing one to the handler.
    let product = match &state.catalogue {
        Catalogue::Guarded(guarded) => {
            let layer = guarded.guard().layer(path_param(ID));
            let layer = layer.not_found(product_not_found).on_error(products::unreadable);
            get(products::get_guarded).route_layer(layer)
        }
        Catalogue::Baseline(_) => get(products::get_baseline),
    };
    Router::new()
        .route("/products", post(products::create))
        .route("/products/{id}", product.put(products::update).delete(products::delete))
        .route("/healthz", get(state::healthz))
        .route("/readyz", get(state::readyz))
        .route("/guard", get(state::guard))
        .fallback(|| async { Problem::new(StatusCode::NOT_FOUND, "nothing is here") })
        // axum adds the header `Allow`.
        .method_not_allowed_fallback(|| async {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this method is not allowed here")
        })
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(state)
}
