//! CORS layers outside of the guard and inside.

use std::convert::Infallible;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::{HeaderValue, Method, StatusCode};
use tower::ServiceExt as _;

use super::super::{Guarded, path_param};
use super::apps::{Product, Reply, product_not_found, products, reply_of, request};

/// The least that a browser needs.
async fn cors(request: Request, next: Next) -> Response {
    let preflight = request.method() == Method::OPTIONS
        && request.headers().contains_key("access-control-request-method");
    let mut response = match preflight {
        true => StatusCode::NO_CONTENT.into_response(),
        false => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert("access-control-allow-origin", HeaderValue::from_static("*"));
    response
}

async fn from_elsewhere(app: &Router, method: &str, uri: &str, asks_for: Option<&str>) -> Reply {
    let mut request = request(method, uri);
    let headers = request.headers_mut();
    headers.insert("origin", HeaderValue::from_static("https://shop.example"));
    if let Some(method) = asks_for {
        headers.insert("access-control-request-method", method.parse().unwrap());
    }
    reply_of(app.clone().oneshot(request).await.unwrap()).await
}

#[tokio::test]
async fn case_52_a_preflight_gets_the_cors_layers_answer_in_both_orders() {
    let guard = products().await;
    let layer = || guard.layer(path_param("id")).not_found(product_not_found);
    let handler =
        || get(async |product: Guarded<Product>| product.name.clone()).put(async || "put");
    let outside =
        Router::new().route("/products/{id}", handler()).route_layer(layer()).layer(from_fn(cors));
    let inside = Router::new()
        .route("/products/{id}", handler().layer::<_, Infallible>(from_fn(cors)).layer(layer()));
    for (app, is_outside) in [(outside, true), (inside, false)] {
        for id in [7, 8] {
            for method in ["GET", "PUT", "DELETE"] {
                let uri = format!("/products/{id}");
                let reply = from_elsewhere(&app, "OPTIONS", &uri, Some(method)).await;
                assert_eq!(reply.status, 204, "{method} {uri}");
                assert_eq!(reply.headers["access-control-allow-origin"], "*");
            }
        }
        let found = from_elsewhere(&app, "GET", "/products/7", None).await;
        assert_eq!((found.status.as_u16(), &*found.body), (200, "product 7"));
        assert_eq!(found.headers["access-control-allow-origin"], "*");
        let refused = from_elsewhere(&app, "GET", "/products/8", None).await;
        assert_eq!(refused.status, 404);
        // Only a layer outside can add its headers to what the guard answers itself.
        assert_eq!(refused.headers.contains_key("access-control-allow-origin"), is_outside);
        // An upsert of a new id gets through.
        assert_eq!(from_elsewhere(&app, "PUT", "/products/8", None).await.body, "put");
    }
}
