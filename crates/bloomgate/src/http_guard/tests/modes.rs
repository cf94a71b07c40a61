//! Checking alone, and reading through.

use axum::extract::Path;
use axum::response::IntoResponse as _;
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;

use super::super::{Guarded, path_param};
use super::apps::{GONE, Product, ask, open_products, product_not_found, products, row};
use crate::guard::Guard;

fn reading(guard: &Guard<i64, Product>) -> Router {
    let handler = get(async |Guarded(product, ..): Guarded<Product>| Json((*product).clone()));
    Router::new()
        .route("/products/{id}", handler)
        .route_layer(guard.layer(path_param("id")).not_found(product_not_found))
}

fn bare() -> Router {
    let handler = get(async |Path(id): Path<i64>| match row(id) {
        Some(product) => Json(product).into_response(),
        None => product_not_found(),
    });
    Router::new().route("/products/{id}", handler)
}

#[tokio::test]
async fn a_reading_layer_answers_as_an_app_that_asks_the_database() {
    for guard in [products().await, open_products().await] {
        let (guarded, bare) = (reading(&guard), bare());
        for id in [7, 42, -1, 0, i64::MAX, 8, -2, i64::MIN, GONE] {
            // Loaded, then from the cache.
            for _ in 0..2 {
                for method in ["GET", "HEAD", "POST", "OPTIONS"] {
                    let uri = format!("/products/{id}");
                    let (with, without) =
                        (ask(&guarded, method, &uri).await, ask(&bare, method, &uri).await);
                    assert_eq!(with, without, "{method} {uri}");
                }
            }
        }
    }
}

#[tokio::test]
async fn case_26_a_row_is_loaded_once_and_so_is_an_absence() {
    let guard = products().await;
    let app = reading(&guard);
    for _ in 0..100 {
        assert_eq!(ask(&app, "GET", "/products/7").await.status, 200);
        assert_eq!(ask(&app, "GET", &format!("/products/{GONE}")).await.status, 404);
        assert_eq!(ask(&app, "GET", "/products/8").await.status, 404);
    }
    let counts = guard.status().counts;
    assert_eq!((counts.loader.loads, counts.refused), (2, 100));
}

#[tokio::test]
async fn a_request_without_a_key_gets_the_not_found_reply() {
    for guard in [products().await, open_products().await] {
        let app = reading(&guard);
        let not_found = ask(&app, "GET", "/products/8").await;
        assert_eq!(not_found.status, 404);
        let loads = guard.status().counts.loader.loads;
        for id in ["abc", "%FF", "99999999999999999999", "7%20", "0x7"] {
            let reply = ask(&app, "GET", &format!("/products/{id}")).await;
            assert_eq!(reply, not_found, "{id}");
        }
        assert_eq!(guard.status().counts.loader.loads, loads);
    }
}

#[tokio::test]
async fn a_handler_without_a_layer_says_so() {
    let guard = products().await;
    let handler = async |Guarded(product, ..): Guarded<Product>| Json((*product).clone());
    let unguarded = Router::new().route("/products/{id}", get(handler));
    let late = Router::new()
        .route("/other/{id}", get(async || "other"))
        .route_layer(guard.layer(path_param("id")))
        .route("/products/{id}", get(handler));
    let checking = Router::new()
        .route("/products/{id}", get(handler))
        .route_layer(guard.gate_layer(path_param("id")));
    for app in [unguarded, late, checking] {
        let reply = ask(&app, "GET", "/products/7").await;
        assert_eq!(reply.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(reply.body.contains("no reading guard layer"), "{}", reply.body);
        assert!(reply.body.contains("/products/{id}"), "{}", reply.body);
    }
    // Nor is there a row for a method that the layer doesn't touch.
    let posting = Router::new()
        .route("/products/{id}", post(handler))
        .route_layer(guard.layer(path_param("id")));
    assert_eq!(ask(&posting, "POST", "/products/7").await.status, 500);
}

#[tokio::test]
async fn a_handler_may_do_without_a_row() {
    let guard = products().await;
    let handler = get(async |product: Result<Guarded<Product>, super::super::GuardedRejection>| {
        product.map_or_else(|none| format!("{none:?}"), |product| product.name.clone())
    });
    let app =
        Router::new().route("/products/{id}", handler).route_layer(guard.layer(path_param("id")));
    assert_eq!(ask(&app, "GET", "/products/7").await.body, "product 7");
    let without = ask(&app, "GET", "/products/seven").await;
    assert_eq!(without.body, "GuardedRejection(no key in the request)");
}

#[tokio::test]
async fn a_row_is_written_as_json_like_the_value_itself() {
    let guard = products().await;
    let app = Router::new()
        .route("/products/{id}", get(async |product: Guarded<Product>| Json(product)))
        .route_layer(guard.layer(path_param("id")));
    let body = ask(&app, "GET", "/products/7").await.body;
    assert_eq!(serde_json::from_str::<Product>(&body).unwrap(), row(7).unwrap());
}

#[tokio::test]
async fn two_guards_on_one_route_hand_over_rows_of_two_types() {
    let (products, texts) = (products().await, super::apps::texts(&["acme"]).await);
    let handler = get(async |tenant: Guarded<String>, product: Guarded<Product>| {
        format!("{} {}", *tenant, product.name)
    });
    let app = Router::new()
        .route("/{tenant}/products/{id}", handler)
        .route_layer(products.layer(path_param("id")))
        .route_layer(texts.layer(path_param("tenant")));
    assert_eq!(ask(&app, "GET", "/acme/products/7").await.body, "acme product 7");
    assert_eq!(ask(&app, "GET", "/acme/products/8").await.status, 404);
    assert_eq!(ask(&app, "GET", "/other/products/7").await.status, 404);
}

#[tokio::test]
async fn case_51_the_status_shows_a_guard_that_is_before_no_route() {
    let guard = super::apps::texts(&["a"]).await;
    let layer = guard.gate_layer(path_param("id"));
    assert_eq!(guard.status().guarded_routes, 0);
    let show = axum::routing::get(|| async { "shown" });
    let _app: Router = Router::new().route("/items/{id}", show).route_layer(layer);
    assert_eq!(guard.status().guarded_routes, 1);
}

#[tokio::test]
async fn case_51_requests_and_connections_do_not_count_as_guarded_routes() {
    let guard = products().await;
    let layer = || guard.gate_layer(path_param("id"));
    // axum makes these services anew, for each request here and for each connection in a server.
    let app = Router::new()
        .route("/a/{id}", get(async || "a").route_layer(layer()))
        .route("/b/{id}", get(async || "b").put(async || "b").route_layer(layer()));
    for _ in 0..5 {
        for uri in ["/a/7", "/b/7", "/a/8"] {
            ask(&app, "GET", uri).await;
        }
    }
    assert_eq!(guard.status().guarded_routes, 2);
}
