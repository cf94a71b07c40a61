//! Guards and apps that the tests share, and answers that can be compared.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, Method, StatusCode, Uri, header};
use serde::{Deserialize, Serialize};
use tower::ServiceExt as _;

use crate::guard::{Guard, GuardBuilder};
use crate::key::Key;
use crate::{Gate, loader, warm_up};

pub(super) const CEILING: Duration = Duration::from_secs(20);

/// An id whose load fails.
pub(super) const FAILS: i64 = 500;
/// An id whose load panics.
pub(super) const PANICS: i64 = 501;
/// An id that the gate knows and the database doesn't.
pub(super) const GONE: i64 = 404;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Product {
    pub(super) id: i64,
    pub(super) name: String,
}

/// The row with this id.
pub(super) fn row(id: i64) -> Option<Product> {
    let name = format!("product {id}");
    matches!(id, -1 | 0 | 1 | 7 | 42 | i64::MAX).then_some(Product { id, name })
}

/// A not-found reply with headers and a body of its own.
pub(super) fn product_not_found() -> Response {
    let headers =
        [(header::CONTENT_TYPE, "application/problem+json"), (header::CACHE_CONTROL, "no-store")];
    (StatusCode::NOT_FOUND, headers, r#"{"title":"no such product"}"#).into_response()
}

pub(super) fn describe_products() -> GuardBuilder<i64, Product> {
    Guard::builder("products")
        .source(warm_up::Keys::new([-1, 0, 1, 7, 42, i64::MAX, GONE, FAILS, PANICS]))
        .loader(loader::from_fn(async |id: i64| match id {
            FAILS => Err(io::Error::other("the database is away")),
            PANICS => panic!("a loader's fault"),
            id => Ok(row(id)),
        }))
}

/// A guard of products whose gate is closed.
pub(super) async fn products() -> Guard<i64, Product> {
    closed(describe_products()).await
}

/// The same with an open gate.
pub(super) async fn open_products() -> Guard<i64, Product> {
    describe_products().gate(Gate::open()).build().await.unwrap()
}

/// A guard of texts whose gate is closed.
pub(super) async fn texts(stored: &[&str]) -> Guard<String, String> {
    let rows: HashMap<String, String> =
        stored.iter().map(|text| ((*text).to_owned(), (*text).to_owned())).collect();
    let keys: Vec<String> = rows.keys().cloned().collect();
    let builder = Guard::builder("texts").source(warm_up::Keys::new(keys)).loader(loader::from_fn(
        move |key: String| {
            let row = rows.get(&key).cloned();
            async move { Ok::<_, io::Error>(row) }
        },
    ));
    closed(builder).await
}

pub(super) async fn closed<K: Key, V: crate::guard::Value>(
    builder: GuardBuilder<K, V>,
) -> Guard<K, V> {
    let guard = builder.build().await.unwrap();
    let end = Instant::now() + CEILING;
    while !guard.is_ready() {
        assert!(Instant::now() < end, "{}", guard.unready_reason());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    guard
}

pub(super) fn request(method: &str, uri: &str) -> Request {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let uri: Uri = uri.parse().unwrap_or_else(|error| panic!("{uri}: {error}"));
    let mut request = Request::new(Body::from("a body"));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    request
}

/// A whole answer.
#[derive(Debug, PartialEq)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

pub(super) async fn reply_of(response: Response) -> Reply {
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    Reply {
        status: parts.status,
        headers: parts.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    }
}

pub(super) async fn ask(app: &Router, method: &str, uri: &str) -> Reply {
    let response = app.clone().oneshot(request(method, uri)).await.unwrap();
    reply_of(response).await
}

/// A guard of texts that refuses nothing.
pub(super) async fn open_texts() -> Guard<String, String> {
    let builder = Guard::builder("texts")
        .gate(Gate::open())
        .source(warm_up::Keys::new(Vec::<String>::new()))
        .loader(loader::from_fn(async |_: String| Ok::<_, io::Error>(None)));
    builder.build().await.unwrap()
}
