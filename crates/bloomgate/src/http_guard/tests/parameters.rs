//! Missing and repeated parameters, which are never guessed.

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::get;
use tower::{Layer as _, ServiceExt as _};

use super::super::path_param;
use super::apps::{ask, product_not_found, products, reply_of, request};
use super::log::ErrorLines;

async fn show(Path(id): Path<i64>) -> String {
    id.to_string()
}

async fn show_last(Path(ids): Path<Vec<(String, i64)>>) -> String {
    ids.last().unwrap().1.to_string()
}

#[tokio::test]
async fn a_gate_only_layer_passes_where_the_route_lacks_the_parameter_and_logs_one_line() {
    let guard = products().await;
    let app = Router::new()
        .route("/products/{id}", get(show))
        .route_layer(guard.gate_layer(path_param("typo")));
    let errors = ErrorLines::capture();
    for id in 1..=50 {
        assert_eq!(ask(&app, "GET", &format!("/products/{id}")).await.body, id.to_string());
    }
    let lines = errors.take();
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in ["/products/{id}", "\"typo\"", "guard=\"products\""] {
        assert!(lines[0].contains(part), "{part}: {lines:?}");
    }
}

#[tokio::test]
async fn a_reading_layer_answers_500_where_the_route_lacks_the_parameter() {
    let guard = products().await;
    let app = Router::new()
        .route("/products/{id}", get(show))
        .route_layer(guard.layer(path_param("typo")).not_found(product_not_found));
    let errors = ErrorLines::capture();
    for id in ["7", "8", "7"] {
        let reply = ask(&app, "GET", &format!("/products/{id}")).await;
        assert_eq!(reply.status, 500);
        assert_eq!(reply.headers["content-type"], "text/plain; charset=utf-8");
        for part in ["/products/{id}", "\"typo\""] {
            assert!(reply.body.contains(part), "{part}: {}", reply.body);
        }
    }
    let lines = errors.take();
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in ["/products/{id}", "\"typo\"", "guard=\"products\""] {
        assert!(lines[0].contains(part), "{part}: {lines:?}");
    }
    // Other methods aren't touched.
    assert_eq!(ask(&app, "PUT", "/products/7").await.status, 405);
    assert_eq!(errors.take().len(), 0);
}

#[tokio::test]
async fn each_route_under_one_layer_has_a_line_of_its_own() {
    let guard = products().await;
    let app = Router::new()
        .route("/products/{id}", get(show))
        .route("/offers/{id}", get(show))
        .route_layer(guard.layer(path_param("typo")));
    let errors = ErrorLines::capture();
    for uri in ["/products/7", "/offers/7", "/products/7", "/offers/7"] {
        ask(&app, "GET", uri).await;
    }
    let lines = errors.take();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("/products/{id}") && lines[1].contains("/offers/{id}"), "{lines:?}");
}

#[tokio::test]
async fn a_parameter_that_nested_routers_repeat_is_not_guessed() {
    let guard = products().await;
    let checking = Router::new()
        .route("/friends/{id}", get(show_last))
        .route_layer(guard.gate_layer(path_param("id")).not_found(product_not_found));
    let reading = Router::new()
        .route("/friends/{id}", get(show_last))
        .route_layer(guard.layer(path_param("id")).not_found(product_not_found));
    let checking = Router::new().nest_service("/users/{id}", checking);
    let reading = Router::new().nest_service("/users/{id}", reading);
    let errors = ErrorLines::capture();
    // One exists and one doesn't, in both orders: neither may be refused or read.
    for (user, friend) in [(7, 8), (8, 7)] {
        let uri = format!("/users/{user}/friends/{friend}");
        assert_eq!(ask(&checking, "GET", &uri).await.body, friend.to_string());
        let reply = ask(&reading, "GET", &uri).await;
        assert_eq!(reply.status, 500, "{}", reply.body);
        for part in ["/users/{id}/friends/{id}", "\"id\"", "more than once"] {
            assert!(reply.body.contains(part), "{part}: {}", reply.body);
        }
    }
    assert_eq!(errors.take().len(), 2, "one line for each layer");
    assert_eq!(guard.status().counts.loader.loads, 0);
}

#[tokio::test]
async fn a_fallback_has_no_parameter_and_is_no_mistake() {
    let guard = products().await;
    let app = || {
        Router::new()
            .route("/products/{id}", get(show))
            .fallback(async || (StatusCode::NOT_FOUND, "nothing here"))
    };
    let errors = ErrorLines::capture();
    for app in [
        app().layer(guard.layer(path_param("id")).not_found(product_not_found)),
        app().layer(guard.gate_layer(path_param("id")).not_found(product_not_found)),
    ] {
        assert_eq!(ask(&app, "GET", "/nowhere").await.body, "nothing here");
        assert_eq!(ask(&app, "GET", "/products/7").await.body, "7");
        assert_eq!(ask(&app, "GET", "/products/8").await.status, 404);
    }
    assert_eq!(errors.take(), Vec::<String>::new());
}

#[tokio::test]
async fn a_layer_before_the_whole_router_sees_no_parameter_and_says_so() {
    let guard = products().await;
    let router = Router::new().route("/products/{id}", get(show));
    let errors = ErrorLines::capture();
    let checking = guard.gate_layer(path_param("id")).layer(router.clone());
    let reply = reply_of(checking.oneshot(request("GET", "/products/8")).await.unwrap()).await;
    assert_eq!(reply.body, "8");
    let reading = guard.layer(path_param("id")).layer(router);
    let reply = reply_of(reading.oneshot(request("GET", "/products/8")).await.unwrap()).await;
    assert_eq!(reply.status, 500);
    let lines = errors.take();
    assert_eq!(lines.len(), 2);
    assert!(lines.iter().all(|line| !line.contains("/products/8")), "no keys in logs: {lines:?}");
}
