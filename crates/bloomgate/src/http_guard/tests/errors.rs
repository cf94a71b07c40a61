//! Errors of the guard, answered and forgotten.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::get;
use futures_util::FutureExt as _;
use http::StatusCode;
use tower::ServiceExt as _;

use super::super::{Guarded, path_param};
use super::apps::{
    FAILS, PANICS, Product, ask, describe_products, open_products, product_not_found, products,
    request,
};
use crate::error::ReadError;
use crate::guard::Guard;

fn reading(guard: &Guard<i64, Product>) -> Router {
    Router::new()
        .route("/products/{id}", get(async |product: Guarded<Product>| product.name.clone()))
        .route_layer(guard.layer(path_param("id")).not_found(product_not_found))
}

#[tokio::test]
async fn case_27_a_failed_load_is_503_with_retry_after_and_never_404() {
    for guard in [products().await, open_products().await] {
        let app = reading(&guard);
        for round in 1..=3 {
            for method in ["GET", "HEAD"] {
                let reply = ask(&app, method, &format!("/products/{FAILS}")).await;
                assert_eq!(reply.status, 503);
                assert_eq!(reply.headers["retry-after"], "1");
                assert_eq!(reply.body, "", "no details for strangers");
            }
            assert_eq!(guard.status().counts.loader.loads, 2 * round, "nothing is remembered");
        }
    }
}

#[tokio::test]
async fn case_32_a_loader_that_panics_is_500_and_harms_no_other_key() {
    let guard = products().await;
    let app = reading(&guard);
    for _ in 0..3 {
        let reply = ask(&app, "GET", &format!("/products/{PANICS}")).await;
        assert_eq!(reply.status, 500);
        assert!(!reply.headers.contains_key("retry-after"));
        assert_eq!(ask(&app, "GET", "/products/7").await.status, 200);
    }
}

#[tokio::test]
async fn case_27_a_load_that_takes_too_long_is_503() {
    let builder = describe_products()
        .loader(crate::loader::from_fn(async |_: i64| {
            std::future::pending::<Result<Option<Product>, std::io::Error>>().await
        }))
        .load_timeout(Duration::from_millis(20));
    let guard = super::apps::closed(builder).await;
    let reply = ask(&reading(&guard), "GET", "/products/7").await;
    assert_eq!(reply.status, 503);
    assert_eq!(reply.headers["retry-after"], "1");
}

#[tokio::test]
async fn the_app_may_word_its_errors_itself() {
    let guard = products().await;
    let layer = guard.layer(path_param("id")).on_error(|error: &ReadError| {
        let mut response = Response::new(Body::from(error.to_string()));
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        response
    });
    let app = Router::new().route("/products/{id}", get(async || "row")).route_layer(layer);
    let reply = ask(&app, "GET", &format!("/products/{FAILS}")).await;
    assert_eq!((reply.status.as_u16(), &*reply.body), (502, "the load failed"));
}

#[tokio::test]
async fn case_32_a_handler_that_panics_leaves_nothing_stuck() {
    async fn handler(product: Guarded<Product>) -> String {
        if product.id == 7 {
            panic!("a handler's fault");
        }
        product.name.clone()
    }
    let guard = products().await;
    let app = Router::new()
        .route("/products/{id}", get(handler))
        .route_layer(guard.layer(path_param("id")).not_found(product_not_found));
    for _ in 0..40 {
        let asked = app.clone().oneshot(request("GET", "/products/7"));
        assert!(AssertUnwindSafe(asked).catch_unwind().await.is_err());
    }
    assert_eq!(ask(&app, "GET", "/products/42").await.body, "product 42");
    assert_eq!(ask(&app, "GET", "/products/8").await.status, 404);
    let status = guard.status();
    assert_eq!((status.in_flight.loads, status.counts.loader.loads), (0, 2));
}

#[tokio::test]
async fn requests_that_are_given_up_leave_nothing_stuck() {
    let guard = products().await;
    let app = reading(&guard);
    for _ in 0..100 {
        let mut asked = Box::pin(app.clone().oneshot(request("GET", "/products/7")));
        let _ = (&mut asked).now_or_never();
        drop(asked);
    }
    assert_eq!(ask(&app, "GET", "/products/7").await.body, "product 7");
    assert_eq!(guard.status().in_flight.loads, 0);
}
