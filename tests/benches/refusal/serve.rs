//! The server of a variant, in a process of its own.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Path;
use axum::handler::Handler as _;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use axum::serve::ListenerExt as _;
use axum::{Extension, Router};
use bloomgate::http_guard::{CheckOnly, CustomNotFound, GuardLayer, PathParam};
use bloomgate::{Gate, Guard, Guarded, loader, path_param, warm_up};
use testbed::net;

use crate::{IDS, REPEATED_URL, REPEATER};

fn not_found() -> Response {
    let kind = [(header::CONTENT_TYPE, "application/problem+json")];
    let body =
        r#"{"type":"about:blank","title":"Not Found","status":404,"detail":"no such product"}"#;
    (StatusCode::NOT_FOUND, kind, body).into_response()
}

async fn guard() -> Guard<i64, String> {
    let guard = Guard::builder("bench")
        .gate(Gate::bloom().items(IDS.unsigned_abs()))
        .source(warm_up::Keys::new(1..=IDS))
        .loader(loader::from_fn(|_: i64| async { Ok::<_, Infallible>(None) }))
        .build()
        .await
        .expect("a guard");
    while !guard.is_ready() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    guard
}

async fn gate_layer() -> GuardLayer<i64, String, PathParam, CheckOnly, CustomNotFound<Body>> {
    guard().await.gate_layer(path_param("id")).not_found(not_found)
}

/// A handler that repeats the reply of a URL, as cheaply as one written out by hand.
fn repeater(url: &str) -> MethodRouter {
    let reply = net::get(url);
    let status = StatusCode::from_u16(reply.status).expect("a status");
    let body: &'static [u8] = reply.body.leak();
    // hyper adds the others itself.
    let own = ["connection", "content-length", "date"];
    let headers = reply.headers.into_iter().filter(|(name, _)| !own.contains(&name.as_str()));
    let headers: Vec<(HeaderName, HeaderValue)> = headers
        .map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            (name, HeaderValue::from_static(value.leak()))
        })
        .collect();
    let headers: &'static [(HeaderName, HeaderValue)] = headers.leak();
    get(move |Path(_): Path<i64>| async move {
        let mut response = (status, body).into_response();
        for (name, value) in headers {
            response.headers_mut().insert(name, value.clone());
        }
        response
    })
}

/// Serves a variant until the process is killed.
pub(crate) async fn serve(variant: &str) {
    let bare = || get(|Path(_): Path<i64>| async { not_found() });
    let row = |Path(id): Path<i64>| async move { format!("row {id}") };
    let nothing = || from_fn(|request, next: Next| async move { next.run(request).await });
    let routes = match variant {
        "bare" => bare(),
        "bare_extension" => bare().route_layer(Extension(())),
        "bare_from_fn" => bare().route_layer(nothing()),
        "gate" => bare().route_layer(gate_layer().await),
        "read" => get(|row: Guarded<String>| async move { row.to_string() })
            .route_layer(guard().await.layer(path_param("id")).not_found(not_found)),
        "handler" => get(row),
        "handler_extension" => get(row).route_layer(Extension(())),
        "handler_from_fn" => get(row).route_layer(nothing()),
        "handler_gate" => get(row).route_layer(gate_layer().await),
        "handler_gate_inside" => get(row.layer(gate_layer().await)),
        REPEATER => {
            let url = std::env::var(REPEATED_URL).expect("the URL of a reply");
            tokio::task::spawn_blocking(move || repeater(&url)).await.expect("a reply")
        }
        other => panic!("no variant {other:?}"),
    };
    let app = Router::new().route("/products/{id}", routes);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("listening on http://{}", listener.local_addr().expect("an address"));
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).expect("TCP_NODELAY"));
    axum::serve(listener, app).await.expect("serving");
}
