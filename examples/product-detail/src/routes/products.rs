//! Products over HTTP.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bloomgate::Guarded;

use crate::app::AppState;
use crate::catalogue::CatalogueError;
use crate::problem::{Problem, product_not_found};
use crate::product::{Product, ProductId};
use crate::product_input::ProductInput;

/// The guard has found the product already.
pub(crate) async fn get_guarded(product: Guarded<Product>) -> Json<Guarded<Product>> {
    Json(product)
}

/// Every request asks the database.
pub(crate) async fn get_baseline(
    State(app): State<AppState>,
    id: ProductId,
) -> Result<Response, CatalogueError> {
    Ok(match app.catalogue.read(id).await? {
        Some(product) => Json(product).into_response(),
        None => product_not_found(),
    })
}

/// The answer when the guard can't tell whether there is such a product.
pub(crate) fn unreadable(error: &bloomgate::ReadError) -> Response {
    if error.is_temporary() {
        CatalogueError::Unavailable.into_response()
    } else {
        Problem::internal().into_response()
    }
}

pub(crate) async fn create(
    State(app): State<AppState>,
    input: ProductInput,
) -> Result<Response, CatalogueError> {
    let product = app.catalogue.create(input).await?;
    let location = [(header::LOCATION, format!("/products/{}", product.id.0))];
    Ok((StatusCode::CREATED, location, Json(product)).into_response())
}

pub(crate) async fn update(
    State(app): State<AppState>,
    id: ProductId,
    input: ProductInput,
) -> Result<Response, CatalogueError> {
    Ok(match app.catalogue.update(id, input).await? {
        Some(product) => Json(product).into_response(),
        None => product_not_found(),
    })
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    id: ProductId,
) -> Result<Response, CatalogueError> {
    Ok(if app.catalogue.delete(id).await? {
        StatusCode::NO_CONTENT.into_response()
    } else {
        product_not_found()
    })
}
