//! The replies that a layer makes, and what it adds to the handler's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use http::request::Parts;
use http::{HeaderName, Response};

use super::super::{Guarded, path_param};
use super::apps::{GONE, Product, ask, closed, describe_products, products, row};
use crate::{Clock, loader};

async fn name(product: Guarded<Product>) -> String {
    product.name.clone()
}

#[tokio::test]
async fn case_74_the_default_not_found_reply_is_not_to_be_stored() {
    let guard = products().await;
    let app = Router::new()
        .route("/read/{id}", get(name).route_layer(guard.layer(path_param("id"))))
        .route("/check/{id}", get(async || "row").route_layer(guard.gate_layer(path_param("id"))));
    // The gate, the loader, the sentinel, and a malformed key.
    let refused = ask(&app, "GET", "/read/8").await;
    assert_eq!((refused.status.as_u16(), &*refused.body), (404, ""));
    assert_eq!(refused.headers["cache-control"], "no-store");
    for uri in ["/read/404", "/read/404", "/read/abc", "/check/8"] {
        assert_eq!(ask(&app, "GET", uri).await, refused, "{uri}");
    }
    let head = ask(&app, "HEAD", "/read/8").await;
    assert_eq!(
        (head.status.as_u16(), &head.headers["cache-control"]),
        (404, &"no-store".parse().unwrap())
    );
    // A row's headers are the handler's own.
    assert!(!ask(&app, "GET", "/read/7").await.headers.contains_key("cache-control"));
}

#[tokio::test]
async fn a_not_found_reply_may_look_at_the_requests_head() {
    let guard = products().await;
    let not_found = |head: &Parts| {
        let language = head.headers.get("accept-language").is_some();
        (StatusCode::NOT_FOUND, format!("nothing at {}, {language}", head.uri.path()))
    };
    let app = Router::new()
        .route(
            "/read/{id}",
            get(name).route_layer(guard.layer(path_param("id")).not_found(not_found)),
        )
        .route(
            "/check/{id}",
            get(async || "row")
                .route_layer(guard.gate_layer(path_param("id")).not_found(not_found)),
        )
        .route(
            "/response/{id}",
            get(name).route_layer(guard.layer(path_param("id")).not_found_response(|head| {
                Response::new(axum::body::Body::from(head.method.to_string()))
            })),
        );
    for id in ["8".to_owned(), GONE.to_string(), "abc".to_owned()] {
        let uri = format!("/read/{id}");
        assert_eq!(ask(&app, "GET", &uri).await.body, format!("nothing at {uri}, false"));
    }
    assert_eq!(ask(&app, "GET", "/check/8").await.body, "nothing at /check/8, false");
    assert_eq!(ask(&app, "GET", "/response/8").await.body, "GET");
    assert_eq!(ask(&app, "GET", "/response/8x").await.body, "GET");
}

#[tokio::test]
async fn a_stale_row_is_marked_by_a_header_that_the_app_names_and_by_none_otherwise() {
    let (clock, time) = Clock::manual();
    let fails = Arc::new(AtomicBool::new(false));
    let failing = Arc::clone(&fails);
    let builder = describe_products()
        .clock(clock)
        .value_ttl(Duration::from_secs(60))
        .stale_if_error(Duration::from_secs(3_600))
        .loader(loader::from_fn(move |id: i64| {
            let fails = failing.load(Ordering::SeqCst);
            async move {
                match fails {
                    true => Err(std::io::Error::other("the database is away")),
                    false => Ok(row(id)),
                }
            }
        }));
    let guard = closed(builder).await;
    let layer = guard.layer(path_param("id"));
    let named = layer.clone().stale_header(HeaderName::from_static("x-stale"));
    let app = Router::new()
        .route("/plain/{id}", get(name).route_layer(layer))
        .route("/named/{id}", get(name).route_layer(named));
    assert!(!ask(&app, "GET", "/named/7").await.headers.contains_key("x-stale"));
    time.advance(Duration::from_secs(61));
    fails.store(true, Ordering::SeqCst);
    let stale = ask(&app, "GET", "/named/7").await;
    assert_eq!((stale.status.as_u16(), &*stale.body), (200, "product 7"));
    assert_eq!(stale.headers["x-stale"], "true");
    let plain = ask(&app, "GET", "/plain/7").await;
    assert_eq!((plain.status.as_u16(), plain.headers.contains_key("x-stale")), (200, false));
    fails.store(false, Ordering::SeqCst);
    assert!(!ask(&app, "GET", "/named/7").await.headers.contains_key("x-stale"));
}
