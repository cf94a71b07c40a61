//! Methods: only GET and HEAD are touched.

use axum::Router;
use axum::extract::{Path, Request};
use axum::http::StatusCode;
use axum::routing::{any, get, put};

use super::super::{Guarded, path_param};
use super::apps::{Product, ask, product_not_found, products};

const UNTOUCHED: [&str; 8] = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE", "get"];

async fn echo(Path(id): Path<i64>, request: Request) -> String {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1_000).await.unwrap();
    let body = String::from_utf8_lossy(&body).into_owned();
    let handed = Guarded::<Product>::from_extensions(&parts.extensions).is_ok();
    format!("{} {id} {body} {handed}", parts.method)
}

#[tokio::test]
async fn case_52_other_methods_reach_the_handler_untouched() {
    let guard = products().await;
    let route = || Router::new().route("/products/{id}", any(echo));
    let layer = || guard.layer(path_param("id")).not_found(product_not_found);
    let checking = guard.gate_layer(path_param("id")).not_found(product_not_found);
    for app in [route().route_layer(checking), route().route_layer(layer())] {
        // For an absent id, and for one that is cached by now.
        ask(&app, "GET", "/products/7").await;
        for id in [8, 7] {
            for method in UNTOUCHED {
                let reply = ask(&app, method, &format!("/products/{id}")).await;
                assert_eq!(reply.status, 200, "{method}");
                assert_eq!(reply.body, format!("{method} {id} a body false"));
            }
        }
        assert_eq!(ask(&app, "GET", "/products/8").await.status, 404);
    }
    assert_eq!(guard.status().counts.refused, 2);
}

#[tokio::test]
async fn reading_keeps_the_body_of_a_get() {
    let guard = products().await;
    let app =
        Router::new().route("/products/{id}", get(echo)).route_layer(guard.layer(path_param("id")));
    assert_eq!(ask(&app, "GET", "/products/7").await.body, "GET 7 a body true");
}

#[tokio::test]
async fn case_51_a_wrong_method_keeps_405_and_an_unknown_route_keeps_the_fallback() {
    let guard = products().await;
    let layer = || guard.gate_layer(path_param("id")).not_found(product_not_found);
    let app = Router::new()
        .route("/products/{id}", get(async || "row").put(async || "put"))
        .route_layer(layer())
        // On the method router itself, the layer leaves its 405 alone for GET too.
        .route("/puts/{id}", put(async || "put").route_layer(layer()))
        .route("/free/{id}", get(async || "free"))
        .fallback(async || (StatusCode::NOT_FOUND, "nothing here"));
    let reply = ask(&app, "DELETE", "/products/8").await;
    assert_eq!(reply.status, 405);
    assert_eq!(reply.headers["allow"], "GET,HEAD,PUT");
    for method in ["GET", "HEAD"] {
        let reply = ask(&app, method, "/puts/8").await;
        assert_eq!(
            (reply.status.as_u16(), &reply.headers["allow"]),
            (405, &"PUT".parse().unwrap())
        );
    }
    assert_eq!(ask(&app, "GET", "/nowhere").await.body, "nothing here");
    // A route that is added after the layer isn't guarded.
    assert_eq!(ask(&app, "GET", "/free/8").await.body, "free");
}
