//! Readiness belongs to the instance that was polled.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use http::request::Parts;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{Layer, Service, ServiceExt as _};

use super::super::{ExtractKey, GuardLayer};
use super::apps::{FAILS, GONE, Product, open_products, products, request};
use crate::guard::Guard;

/// The key is the whole path.
fn whole_path(parts: &mut Parts) -> Option<i64> {
    parts.uri.path()[1..].parse().ok()
}

fn layers(
    guard: &Guard<i64, Product>,
) -> [GuardLayer<i64, Product, impl ExtractKey<i64> + use<>>; 2] {
    let layer = guard.layer(whole_path);
    [layer.clone(), layer.gate_only()]
}

/// Panics when it is called without having been asked whether it is ready.
#[derive(Default)]
struct Strict {
    asked: bool,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Service<Request> for Strict {
    type Response = Response;
    type Error = Infallible;
    type Future = Ready<Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.asked = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request) -> Self::Future {
        assert!(std::mem::take(&mut self.asked), "called without being ready");
        ready(Ok(Response::new(Body::empty())))
    }
}

#[tokio::test]
async fn case_49_only_an_instance_that_was_ready_is_called() {
    for guard in [products().await, open_products().await] {
        for layer in layers(&guard) {
            let mut service = layer.layer(Strict::default());
            for uri in ["/7", "/8", "/7", "/x", "/8", "/404", "/42"] {
                for method in ["GET", "HEAD", "POST"] {
                    let ready = service.ready().await.unwrap();
                    let _ = ready.call(request(method, uri)).await.unwrap();
                    let _ = service.clone().oneshot(request(method, uri)).await.unwrap();
                }
            }
        }
    }
}

/// Lets two requests in at a time; a permit is taken in `poll_ready`.
struct Limited {
    permits: Arc<Semaphore>,
    waiting: Option<BoxFuture<'static, OwnedSemaphorePermit>>,
    permit: Option<OwnedSemaphorePermit>,
    inside: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Limited {
    fn new(permits: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(permits)),
            waiting: None,
            permit: None,
            inside: Arc::default(),
            most: Arc::default(),
        }
    }
}

impl Clone for Limited {
    fn clone(&self) -> Self {
        Self {
            permits: Arc::clone(&self.permits),
            waiting: None,
            permit: None,
            inside: Arc::clone(&self.inside),
            most: Arc::clone(&self.most),
        }
    }
}

impl Service<Request> for Limited {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if self.permit.is_none() {
            let permits = Arc::clone(&self.permits);
            let waiting = self
                .waiting
                .get_or_insert_with(|| async { permits.acquire_owned().await.unwrap() }.boxed());
            let Poll::Ready(permit) = waiting.poll_unpin(cx) else {
                return Poll::Pending;
            };
            (self.waiting, self.permit) = (None, Some(permit));
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request) -> Self::Future {
        let permit = self.permit.take().expect("called without being ready");
        let (inside, most) = (Arc::clone(&self.inside), Arc::clone(&self.most));
        Box::pin(async move {
            let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
            inside.fetch_sub(1, Ordering::SeqCst);
            drop(permit);
            Ok(Response::new(Body::empty()))
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_49_a_limit_behind_the_guard_holds_with_50_requests_at_a_time() {
    for guard in [products().await, open_products().await] {
        for layer in layers(&guard) {
            let limited = Limited::new(2);
            let most = Arc::clone(&limited.most);
            let permits = Arc::clone(&limited.permits);
            let service = layer.layer(limited);
            let requests = (0..50).map(|n| {
                let service = service.clone();
                let id = [7, 42, 8, GONE, 1][n % 5];
                let method = ["GET", "HEAD", "POST"][n % 3];
                tokio::spawn(service.oneshot(request(method, &format!("/{id}"))))
            });
            for answered in join_all(requests.collect::<Vec<_>>()).await {
                let _ = answered.unwrap().unwrap();
            }
            assert!(most.load(Ordering::SeqCst) <= 2);
            assert_eq!(permits.available_permits(), 2);
        }
    }
}

#[tokio::test]
async fn case_49_a_refusal_gives_back_what_was_reserved() {
    let guard = products().await;
    for layer in layers(&guard) {
        let limited = Limited::new(1);
        let permits = Arc::clone(&limited.permits);
        let mut service = layer.layer(limited);
        for uri in ["/8", "/9", "/8"] {
            let ready = service.ready().await.unwrap();
            assert_eq!(permits.available_permits(), 0);
            let refused = ready.call(request("GET", uri));
            // At once, not only when the answer has been written.
            assert_eq!(permits.available_permits(), 1);
            assert_eq!(refused.await.unwrap().status(), 404);
            // Another instance gets the permit while this one is alive.
            let other = service.clone().oneshot(request("GET", "/7")).now_or_never();
            assert!(other.is_none() || other.unwrap().is_ok());
        }
    }
}

#[tokio::test]
async fn case_49_what_the_guard_answers_itself_gives_back_what_was_reserved() {
    let guard = products().await;
    let limited = Limited::new(1);
    let permits = Arc::clone(&limited.permits);
    let mut service = guard.layer(whole_path).layer(limited);
    for (id, status) in [(GONE, 404), (FAILS, 503), (7, 200)] {
        let ready = service.ready().await.unwrap();
        let reply = ready.call(request("GET", &format!("/{id}"))).await.unwrap();
        assert_eq!(reply.status(), status);
        assert_eq!(permits.available_permits(), 1);
    }
    // A request that is given up while it is read, too.
    let ready = service.ready().await.unwrap();
    let mut asked = Box::pin(ready.call(request("GET", "/42")));
    assert!((&mut asked).now_or_never().is_none());
    drop(asked);
    assert_eq!(permits.available_permits(), 1);
}

#[tokio::test]
async fn case_49_a_service_that_is_not_ready_makes_the_guard_wait() {
    let guard = products().await;
    for layer in layers(&guard) {
        let limited = Limited::new(1);
        let permits = Arc::clone(&limited.permits);
        let held = permits.acquire_owned().await.unwrap();
        let mut service = layer.layer(limited);
        assert!(service.ready().now_or_never().is_none());
        drop(held);
        assert!(service.ready().now_or_never().unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_refusal_is_ready_at_the_first_poll() {
    let guard = products().await;
    for layer in layers(&guard) {
        let mut service = layer.layer(Strict::default());
        let ready = service.ready().await.unwrap();
        let refused = ready.call(request("GET", "/8")).now_or_never();
        assert_eq!(refused.unwrap().unwrap().status(), 404);
    }
}
