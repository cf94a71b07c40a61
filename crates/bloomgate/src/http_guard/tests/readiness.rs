//! Readiness of the inner service: asked for by passing requests alone, kept by the instance that
//! was asked.

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
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt as _};

use super::apps::{CEILING, FAILS, GONE, open_products, products, request};

/// The key is the whole path.
fn whole_path(parts: &mut Parts) -> Option<i64> {
    parts.uri.path()[1..].parse().ok()
}

/// Runs the same code with a layer of each mode.
macro_rules! each_mode {
    ($guard:expr, $layer:ident => $code:block) => {{
        let $layer = $guard.layer(whole_path);
        $code
    }
    {
        let $layer = $guard.gate_layer(whole_path);
        $code
    }};
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
        each_mode!(guard, layer => {
            let mut service = layer.layer(Strict::default());
            for uri in ["/7", "/8", "/7", "/x", "/8", "/404", "/42"] {
                for method in ["GET", "HEAD", "POST"] {
                    let ready = service.ready().await.unwrap();
                    let _ = ready.call(request(method, uri)).await.unwrap();
                    let _ = service.clone().oneshot(request(method, uri)).await.unwrap();
                }
            }
        });
    }
}

/// Lets a number of requests in at a time; a permit is taken in `poll_ready`. Counts its clones.
struct Limited {
    permits: Arc<Semaphore>,
    waiting: Option<BoxFuture<'static, OwnedSemaphorePermit>>,
    permit: Option<OwnedSemaphorePermit>,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    inside: AtomicUsize,
    most_inside: AtomicUsize,
    clones: AtomicUsize,
    asked: AtomicUsize,
}

impl Limited {
    fn new(permits: usize) -> Self {
        let permits = Arc::new(Semaphore::new(permits));
        Self { permits, waiting: None, permit: None, seen: Arc::default() }
    }
}

impl Clone for Limited {
    fn clone(&self) -> Self {
        self.seen.clones.fetch_add(1, Ordering::SeqCst);
        Self {
            permits: Arc::clone(&self.permits),
            waiting: None,
            permit: None,
            seen: Arc::clone(&self.seen),
        }
    }
}

impl Service<Request> for Limited {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.seen.asked.fetch_add(1, Ordering::SeqCst);
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
        let seen = Arc::clone(&self.seen);
        Box::pin(async move {
            let now = seen.inside.fetch_add(1, Ordering::SeqCst) + 1;
            seen.most_inside.fetch_max(now, Ordering::SeqCst);
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
            seen.inside.fetch_sub(1, Ordering::SeqCst);
            drop(permit);
            Ok(Response::new(Body::empty()))
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_49_a_limit_behind_the_guard_holds_with_50_requests_at_a_time() {
    for guard in [products().await, open_products().await] {
        each_mode!(guard, layer => {
            let limited = Limited::new(2);
            let (seen, permits) = (Arc::clone(&limited.seen), Arc::clone(&limited.permits));
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
            assert!((1..=2).contains(&seen.most_inside.load(Ordering::SeqCst)));
            assert_eq!(permits.available_permits(), 2);
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_49_towers_own_concurrency_limit_holds_behind_the_guard() {
    let guard = products().await;
    each_mode!(guard, layer => {
        let counting = Limited::new(Semaphore::MAX_PERMITS);
        let seen = Arc::clone(&counting.seen);
        let service = layer.layer(ConcurrencyLimit::new(counting, 3));
        let requests = (0..60).map(|n| {
            let id = [7, 42, 8][n % 3];
            tokio::spawn(service.clone().oneshot(request("GET", &format!("/{id}"))))
        });
        for answered in join_all(requests.collect::<Vec<_>>()).await {
            let _ = answered.unwrap().unwrap();
        }
        assert!((1..=3).contains(&seen.most_inside.load(Ordering::SeqCst)));
    });
}

#[tokio::test]
async fn case_49_a_refusal_neither_reserves_nor_clones_the_inner_service() {
    let guard = products().await;
    each_mode!(guard, layer => {
        let limited = Limited::new(1);
        let (seen, permits) = (Arc::clone(&limited.seen), Arc::clone(&limited.permits));
        let mut service = layer.layer(limited);
        for uri in ["/8", "/9", "/8"] {
            let ready = service.ready().await.unwrap();
            assert_eq!(permits.available_permits(), 1);
            let refused = ready.call(request("GET", uri));
            assert_eq!(permits.available_permits(), 1);
            assert_eq!(refused.await.unwrap().status(), 404);
        }
        let counts = (seen.clones.load(Ordering::SeqCst), seen.asked.load(Ordering::SeqCst));
        assert_eq!(counts, (0, 0));
        // Another instance gets the permit while this one is alive.
        let other = service.clone().oneshot(request("GET", "/7")).await.unwrap();
        assert_eq!(other.status(), 200);
    });
}

#[tokio::test]
async fn case_49_a_passing_request_costs_no_clone_of_a_ready_service() {
    let guard = products().await;
    let limited = Limited::new(1);
    let seen = Arc::clone(&limited.seen);
    let mut service = guard.gate_layer(whole_path).layer(limited);
    for _ in 0..3 {
        let ready = service.ready().await.unwrap();
        assert_eq!(ready.call(request("GET", "/7")).await.unwrap().status(), 200);
    }
    assert_eq!(seen.clones.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn case_49_a_refusal_does_not_wait_for_a_service_that_is_not_ready() {
    let guard = products().await;
    each_mode!(guard, layer => {
        let limited = Limited::new(1);
        let permits = Arc::clone(&limited.permits);
        let _held = permits.acquire_owned().await.unwrap();
        let mut service = layer.layer(limited);
        let ready = service.ready().now_or_never().unwrap().unwrap();
        let refused = ready.call(request("GET", "/8")).now_or_never().unwrap().unwrap();
        assert_eq!(refused.status(), 404);
    });
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
    // A request that is given up while it is read holds nothing either.
    let ready = service.ready().await.unwrap();
    let mut asked = Box::pin(ready.call(request("GET", "/42")));
    assert!((&mut asked).now_or_never().is_none());
    assert_eq!(permits.available_permits(), 1);
    drop(asked);
    assert_eq!(permits.available_permits(), 1);
}

#[tokio::test]
async fn case_49_a_service_that_is_not_ready_makes_a_passing_request_wait() {
    let guard = products().await;
    // Cached, so that reading takes no time.
    let _ = guard.get(&7).await.unwrap();
    each_mode!(guard, layer => {
        let limited = Limited::new(1);
        let permits = Arc::clone(&limited.permits);
        let held = Arc::clone(&permits).acquire_owned().await.unwrap();
        let mut service = layer.layer(limited);
        let ready = service.ready().now_or_never().unwrap().unwrap();
        let waiting = tokio::spawn(ready.call(request("GET", "/7")));
        // Given up while it waits, a request leaves the queue.
        let mut given_up = Box::pin(service.call(request("GET", "/7")));
        assert!((&mut given_up).now_or_never().is_none());
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(given_up);
        drop(held);
        let reply = tokio::time::timeout(CEILING, waiting).await.unwrap().unwrap().unwrap();
        assert_eq!(reply.status(), 200);
        assert_eq!(permits.available_permits(), 1);
    });
}

/// Answers `Pending` a number of times, then that it is closed.
#[derive(Clone, Default)]
struct Closed {
    asked: u32,
    pending: u32,
}

impl Service<Request> for Closed {
    type Response = Response;
    type Error = &'static str;
    type Future = Ready<Result<Response, &'static str>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        self.asked += 1;
        if self.asked <= self.pending {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Err("closed"))
    }

    fn call(&mut self, _: Request) -> Self::Future {
        panic!("called without being ready")
    }
}

#[tokio::test]
async fn case_49_an_error_of_the_inner_readiness_reaches_the_caller() {
    let guard = products().await;
    for pending in [0, 1, 2] {
        each_mode!(guard, layer => {
            let service = layer.layer(Closed { asked: 0, pending });
            for (method, uri) in [("GET", "/7"), ("GET", "/x"), ("PUT", "/8")] {
                let outcome = service.clone().oneshot(request(method, uri)).await;
                assert_eq!(outcome.map(|_| ()), Err("closed"), "{method} {uri}");
            }
            let refused = service.clone().oneshot(request("GET", "/8")).await;
            assert_eq!(refused.unwrap().status(), 404);
        });
    }
}

#[tokio::test]
async fn a_refusal_is_ready_at_the_first_poll() {
    let guard = products().await;
    each_mode!(guard, layer => {
        let mut service = layer.layer(Strict::default());
        let ready = service.ready().await.unwrap();
        let refused = ready.call(request("GET", "/8")).now_or_never();
        assert_eq!(refused.unwrap().unwrap().status(), 404);
    });
}
