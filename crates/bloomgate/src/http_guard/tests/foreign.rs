//! Services that aren't axum's: plain hyper, tonic's body and error, bodies without a default.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use testbed::net;
use tower::{Layer as _, Service, ServiceExt as _, service_fn};

use super::super::{Guarded, NoRow};
use super::apps::{FAILS, GONE, Product, products};

/// The key is the last segment of the path.
fn last_segment(head: &mut Parts) -> Option<i64> {
    head.uri.path().rsplit('/').next()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_stands_before_a_plain_hyper_service() {
    async fn show(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let text = match Guarded::<Product>::from_extensions(request.extensions()) {
            Ok(product) => product.name.clone(),
            Err(NoRow::NoKey) => "no key".to_owned(),
            Err(no_row) => no_row.to_string(),
        };
        Ok(Response::new(Full::from(text)))
    }
    let guard = products().await;
    let service = guard.layer(last_segment).layer(service_fn(show));
    let checked = guard
        .gate_layer(last_segment)
        .not_found_response(|head| {
            let mut response = Response::new(Full::from(format!("not at {}", head.uri.path())));
            *response.status_mut() = StatusCode::NOT_FOUND;
            response
        })
        .layer(service_fn(show));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (service, checked) = (service.clone(), checked.clone());
            let both = service_fn(move |request: Request<Incoming>| {
                let (service, checked) = (service.clone(), checked.clone());
                async move {
                    match request.uri().path().starts_with("/check") {
                        true => checked.oneshot(request).await,
                        false => service.oneshot(request).await,
                    }
                }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(both));
            tokio::spawn(connection);
        }
    });
    tokio::task::spawn_blocking(move || {
        let ask = |method: &str, path: String| {
            let reply = net::request(method, &format!("http://{address}{path}"), &[], b"");
            (reply.status, reply.text().to_owned())
        };
        assert_eq!(ask("GET", "/read/7".into()), (200, "product 7".into()));
        assert_eq!(ask("GET", "/read/8".into()), (404, String::new()));
        assert_eq!(ask("GET", format!("/read/{GONE}")), (404, String::new()));
        assert_eq!(ask("GET", format!("/read/{FAILS}")), (503, String::new()));
        assert_eq!(ask("GET", "/read/abc".into()), (200, "no key".into()));
        assert_eq!(ask("POST", "/read/8".into()), (200, "no guard on this route".into()));
        assert_eq!(ask("GET", "/check/8".into()), (404, "not at /check/8".into()));
        assert_eq!(ask("GET", "/check/7".into()), (200, "no guard on this route".into()));
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_guard_stands_before_a_tonic_service() {
    type Body = tonic::body::Body;
    let guard = products().await;
    let inner = service_fn(async |request: Request<Body>| match request.uri().path() {
        "/7" => Ok(Response::new(Body::empty())),
        _ => Err(tonic::Status::unimplemented("no such method")),
    });
    let service = guard.layer(last_segment).layer(inner);
    let ask = async |method: &str, uri: &str| {
        let request = Request::builder().method(method).uri(uri).body(Body::empty()).unwrap();
        service.clone().oneshot(request).await
    };
    assert_eq!(ask("GET", "/7").await.unwrap().status(), 200);
    assert_eq!(ask("GET", "/8").await.unwrap().status(), 404);
    // The service's own error type passes through. A gRPC call is a POST.
    let status = ask("GET", "/42").await.map(|_| ()).unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unimplemented);
    let status = ask("POST", "/8").await.map(|_| ()).unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unimplemented);
}

/// A body without a default, and not `Send`.
#[derive(Debug, PartialEq)]
struct Odd(std::rc::Rc<u8>);

#[derive(Clone)]
struct OddService;

impl Service<Request<Odd>> for OddService {
    type Response = Response<Odd>;
    type Error = &'static str;
    type Future = Ready<Result<Response<Odd>, &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Odd>) -> Self::Future {
        match request.uri().path() {
            "/42" => ready(Err("failed")),
            _ => ready(Ok(Response::new(request.into_body()))),
        }
    }
}

#[tokio::test]
async fn a_gate_asks_nothing_of_the_body_and_hands_errors_on() {
    let guard = products().await;
    let service = guard
        .gate_layer(last_segment)
        .not_found_response(|_| Response::new(Odd(std::rc::Rc::new(0))))
        .layer(OddService);
    let ask = async |uri: &str| {
        let mut request = Request::new(Odd(std::rc::Rc::new(7)));
        *request.uri_mut() = uri.parse().unwrap();
        service.clone().oneshot(request).await.map(|response| *response.into_body().0)
    };
    assert_eq!(ask("/7").await, Ok(7));
    assert_eq!(ask("/8").await, Ok(0));
    assert_eq!(ask("/42").await, Err("failed"));
}
