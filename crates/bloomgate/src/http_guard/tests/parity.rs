//! Parity with the unguarded app: what the gate passes gets exactly its answer, and a refusal is
//! exactly its not-found.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Json, middleware};
use std::convert::Infallible;

use super::super::{CheckOnly, CustomNotFound, GuardLayer, PathParam, path_param};
use super::apps::{Product, ask, open_products, product_not_found, products, row, texts};
use crate::guard::Guard;

const STORED: [&str; 5] = ["abc", "a/b", "a b", "dir/file.txt", "é"];

async fn product(Path(id): Path<i64>) -> Response {
    match row(id) {
        Some(product) => Json(product).into_response(),
        None => product_not_found(),
    }
}

async fn in_tenant(Path((tenant, id)): Path<(String, i64)>) -> Response {
    match row(id) {
        Some(product) => (StatusCode::OK, format!("{tenant}: {}", product.name)).into_response(),
        None => product_not_found(),
    }
}

async fn text(Path(text): Path<String>, RawQuery(query): RawQuery) -> Response {
    if STORED.contains(&text.as_str()) {
        format!("{text} {query:?}").into_response()
    } else {
        product_not_found()
    }
}

async fn search(RawQuery(query): RawQuery) -> String {
    format!("{query:?}")
}

/// Says what arrived.
async fn echo(request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1_000).await.unwrap();
    let shown = format!("{} {} {}", parts.method, parts.uri, body.len());
    (StatusCode::ACCEPTED, shown).into_response()
}

type Layers = Option<(Guard<i64, Product>, Guard<String, String>)>;
type Routes<'a> = &'a dyn Fn(MethodRouter, &'static str) -> MethodRouter;

/// The same app with or without its guards.
fn app(layers: &Layers) -> Router {
    let numbers: Routes = &|routes, name| match layers {
        None => routes,
        Some((guard, _)) => routes.route_layer(of_products(guard, name)),
    };
    let by_text: Routes = &|routes, name| match layers {
        None => routes,
        Some((_, guard)) => {
            routes.route_layer(guard.gate_layer(path_param(name)).not_found(product_not_found))
        }
    };
    let nested = Router::new()
        .route("/items/{id}", numbers(get(in_tenant).put(echo), "id"))
        .fallback(async || (StatusCode::NOT_FOUND, "nothing in the tenant"));
    let mut grouped = Router::new()
        .route("/grouped/{id}", get(product).delete(echo))
        .route("/grouped/{id}/", get(product));
    if let Some((guard, _)) = layers {
        grouped = grouped.route_layer(of_products(guard, "id"));
    }
    Router::new()
        .route("/", get(async || "root"))
        .route("/products", get(search).post(echo))
        .route(
            "/products/{id}",
            numbers(get(product).post(echo).put(echo).patch(echo).delete(echo), "id"),
        )
        .route("/only-posts/{id}", numbers(post(echo), "id"))
        .route("/texts/{text}", by_text(get(text), "text"))
        .route("/files/{*rest}", by_text(get(text), "rest"))
        .nest("/tenants/{tenant}", nested)
        .merge(grouped)
        .fallback(async || (StatusCode::NOT_FOUND, "nothing here"))
        .layer(middleware::from_fn(async |request: Request, next: middleware::Next| {
            let mut response = next.run(request).await;
            response.headers_mut().insert("x-outside", "yes".parse().unwrap());
            Ok::<_, Infallible>(response)
        }))
}

fn of_products(
    guard: &Guard<i64, Product>,
    name: &'static str,
) -> GuardLayer<i64, Product, PathParam, CheckOnly, CustomNotFound<Body>> {
    guard.gate_layer(path_param(name)).not_found(product_not_found)
}

const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE"];

const URIS: [&str; 62] = [
    "/",
    "/?a=b",
    "//",
    "/nowhere",
    "/products",
    "/products?id=7",
    "/products/",
    "/products//",
    "/products/7",
    "/products/8",
    "/products/7/",
    "/products/8/",
    "/products/7/more",
    "/products//7",
    "//products/7",
    "/products/7?",
    "/products/8?",
    "/products/8?id=7",
    "/products/7?a=b&c=%20",
    "/products/-1",
    "/products/-0",
    "/products/0",
    "/products/00",
    "/products/007",
    "/products/008",
    "/products/+7",
    "/products/+8",
    "/products/%37",
    "/products/%38",
    "/products/%2B7",
    "/products/%2D1",
    "/products/7%20",
    "/products/%207",
    "/products/7%00",
    "/products/%FF",
    "/products/%C3%28",
    "/products/%zz",
    "/products/%",
    "/products/9223372036854775807",
    "/products/9223372036854775808",
    "/products/1e3",
    "/products/1.0",
    "/products/abc",
    "/products/%EF%BC%91",
    "/products/7;v=1",
    "/products/7,8",
    "/products/..",
    "/products/./7",
    "/products/%2e%2e/7",
    "/Products/7",
    "/only-posts/7",
    "/only-posts/8",
    "/texts/a%2Fb?x",
    "/files/dir/file.txt",
    "/files/dir/other.txt",
    "/files/",
    "/tenants/acme/items/42",
    "/tenants/acme/items/43",
    "/tenants/7/items/8",
    "/tenants/acme/nowhere",
    "/grouped/42/",
    "/grouped/43/",
];

#[tokio::test]
async fn case_51_case_52_a_guarded_app_answers_as_the_unguarded_one_to_every_method_and_path() {
    let bare = app(&None);
    let guarded = app(&Some((products().await, texts(&STORED).await)));
    for uri in URIS {
        for method in METHODS {
            let (without, with) = (ask(&bare, method, uri).await, ask(&guarded, method, uri).await);
            assert_eq!(without, with, "{method} {uri}");
        }
    }
}

#[tokio::test]
async fn an_open_gate_changes_nothing_either() {
    let bare = app(&None);
    let texts = texts(&STORED).await;
    let guarded = app(&Some((open_products().await, texts)));
    for uri in URIS {
        for method in METHODS {
            let (without, with) = (ask(&bare, method, uri).await, ask(&guarded, method, uri).await);
            assert_eq!(without, with, "{method} {uri}");
        }
    }
}

/// The table above would prove nothing if nothing were refused.
#[tokio::test]
async fn the_guarded_app_refuses_without_asking_the_handler() {
    let guard = products().await;
    let called = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counted = std::sync::Arc::clone(&called);
    let handler = get(move |Path(id): Path<i64>| {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async move { format!("{id}") }
    });
    let app = Router::new().route("/products/{id}", handler).route_layer(of_products(&guard, "id"));
    for (uri, status) in [("/products/8", 404), ("/products/-2", 404), ("/products/7", 200)] {
        for method in ["GET", "HEAD"] {
            assert_eq!(ask(&app, method, uri).await.status, status, "{method} {uri}");
        }
    }
    assert_eq!(called.load(std::sync::atomic::Ordering::Relaxed), 2);
    assert_eq!(guard.status().counts.refused, 4);
}
