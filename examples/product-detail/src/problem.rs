//! Errors as problem details (RFC 9457).

use std::borrow::Cow;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");
/// Of every error: a proxy that kept a 404 would serve it after the product has been created.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// The body of the answer that an attack gets most. Without the id, so that all of them are the
/// same bytes; a constant, so that it costs nothing.
const NO_SUCH_PRODUCT: &str =
    r#"{"type":"about:blank","title":"Not Found","status":404,"detail":"no product has this id"}"#;

/// An error, as the client sees it.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    detail: Cow<'static, str>,
}

#[derive(Serialize)]
struct Document<'a> {
    r#type: &'static str,
    title: &'a str,
    status: u16,
    detail: &'a str,
}

impl Problem {
    /// A problem; `detail` is for the client's developer.
    pub(crate) fn new(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { status, detail: detail.into() }
    }

    /// Something that may well work in a moment.
    pub(crate) fn try_again(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    /// A fault of this service; the log has the details.
    pub(crate) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the service made a mistake")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let document = Json(Document {
            r#type: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: &self.detail,
        });
        let mut response = (self.status, document).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, CONTENT_TYPE);
        headers.insert(header::CACHE_CONTROL, NO_STORE);
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// The answer for every id that has no product, from the gate, a sentinel or the database.
pub(crate) fn product_not_found() -> Response {
    let headers = [(header::CONTENT_TYPE, CONTENT_TYPE), (header::CACHE_CONTROL, NO_STORE)];
    (StatusCode::NOT_FOUND, headers, NO_SUCH_PRODUCT).into_response()
}
