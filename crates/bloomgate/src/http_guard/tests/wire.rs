//! Bytes of refusals and other answers, over a socket.

use axum::extract::Path;
use axum::response::IntoResponse as _;
use axum::routing::get;
use axum::{Json, Router};
use testbed::net;

use super::super::{Guarded, path_param};
use super::apps::{GONE, Product, product_not_found, products, row};

/// Serves `app`; returns its address.
async fn serve(app: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_56_refusals_nulls_and_the_apps_own_not_found_are_the_same_bytes() {
    let guard = products().await;
    let bare = get(async |Path(id): Path<i64>| match row(id) {
        Some(product) => Json(product).into_response(),
        None => product_not_found(),
    });
    let layer = || guard.layer(path_param("id")).not_found(product_not_found);
    let reading = get(async |product: Guarded<Product>| Json((*product).clone()));
    let app = Router::new()
        .route("/bare/{id}", bare.clone())
        .route("/gate/{id}", bare.route_layer(layer().gate_only()))
        .route("/read/{id}", reading.route_layer(layer()));
    let url = serve(app).await;
    tokio::task::spawn_blocking(move || {
        let raw = |method: &str, route: &str, id: i64| {
            let reply = net::request(method, &format!("{url}/{route}/{id}"), &[], b"");
            let expected = if row(id).is_some() { 200 } else { 404 };
            assert_eq!(reply.status, expected, "{method} {route} {id}");
            String::from_utf8(reply.raw_without(&["date"])).unwrap()
        };
        for method in ["GET", "HEAD"] {
            // A row, a refusal, an absence that is loaded and then cached.
            for id in [7, 8, GONE, GONE] {
                let bare = raw(method, "bare", id);
                assert!(bare.contains("content-length: "), "{bare}");
                assert_eq!(bare.ends_with("\r\n\r\n"), method == "HEAD", "{bare}");
                for route in ["gate", "read"] {
                    assert_eq!(raw(method, route, id), bare, "{method} {route} {id}");
                }
            }
        }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_goes_on_after_a_refusal() {
    let guard = products().await;
    let app = Router::new()
        .route("/products/{id}", get(async || "row").post(async |body: String| body))
        .route_layer(guard.gate_layer(path_param("id")).not_found(product_not_found));
    let url = serve(app).await;
    tokio::task::spawn_blocking(move || {
        let mut conn = net::Conn::open(&url["http://".len()..]);
        for _ in 0..3 {
            assert_eq!(conn.request("GET", "/products/8", &[], b"").status, 404);
            assert_eq!(conn.request("HEAD", "/products/8", &[], b"").status, 404);
            assert_eq!(conn.request("GET", "/products/7", &[], b"").text(), "row");
            let posted = conn.request("POST", "/products/8", &[], b"new");
            assert_eq!(posted.text(), "new");
            // A refused request's body isn't taken for the next request.
            assert_eq!(conn.request("GET", "/products/8", &[], b"GET / HTTP/1.1").status, 404);
        }
    })
    .await
    .unwrap();
}
