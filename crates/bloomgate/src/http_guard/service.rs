//! The service: it refuses, passes or reads.

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use http::request::Parts;
use http::{Method, Request, Response};
use tower_service::Service;

use super::entries::{self, EntryId, Outcome};
use super::extract::{ExtractKey, Extracted};
use super::fault::{Explanation, Fault};
use super::future::{Decision, ResponseFuture};
use super::layer::GuardLayer;
use super::mode::{CheckOnly, ReadThrough};
use super::reply::{self, ErrorReply, NotFoundFn, NotFoundReply};
use crate::answer::{Answer, Verdict};
use crate::guard::Value;
use crate::key::Key;

/// A service with a guard before it; made by [`GuardLayer`].
pub struct GuardService<S, K, V, X, Mode, N> {
    inner: S,
    layer: Arc<GuardLayer<K, V, X, Mode, N>>,
}

impl<S, K, V, X, Mode, N> GuardService<S, K, V, X, Mode, N> {
    pub(super) fn new(inner: S, layer: GuardLayer<K, V, X, Mode, N>) -> Self {
        Self { inner, layer: Arc::new(layer) }
    }

    /// Calls the inner service, at once and without a clone if it is ready.
    fn pass<B>(&mut self, request: Request<B>) -> ResponseFuture<S, B>
    where
        S: Service<Request<B>> + Clone,
    {
        // No task waits for this waker: a service that isn't ready is asked again by the future.
        match self.inner.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => ResponseFuture::called(self.inner.call(request)),
            Poll::Ready(Err(error)) => ResponseFuture::failed(error),
            Poll::Pending => {
                // Its place in a queue belongs to the very instance that was polled.
                let clone = self.inner.clone();
                ResponseFuture::waiting(mem::replace(&mut self.inner, clone), request)
            }
        }
    }
}

impl<S: Clone, K, V, X, Mode, N> Clone for GuardService<S, K, V, X, Mode, N> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), layer: Arc::clone(&self.layer) }
    }
}

impl<S: fmt::Debug, K, V, X, Mode: fmt::Debug, N> fmt::Debug for GuardService<S, K, V, X, Mode, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardService")
            .field("inner", &self.inner)
            .field("layer", &self.layer)
            .finish()
    }
}

impl<K: Key, V: Send + Sync + 'static, X: ExtractKey<K>, Mode, N> GuardLayer<K, V, X, Mode, N> {
    /// Logs a mistake in how layers are put on routes, one line once in a while, and explains it.
    fn explain(&self, fault: Fault, head: &Parts) -> String {
        let parameter = self.extractor.parameter();
        let explanation = Explanation { fault, head, parameter }.to_string();
        self.uses.faults.say(&explanation, |requests| {
            let guard = self.guard.status().name;
            tracing::error!(guard, requests, "{explanation}");
        });
        explanation
    }
}

/// Only these methods are touched.
fn reads(method: &Method) -> bool {
    *method == Method::GET || *method == Method::HEAD
}

/// A request that was looked at.
enum Opened<K, B> {
    /// Not to be touched: another method, or no route to guard.
    Other(Request<B>),
    /// The key was read; `None` if it is malformed.
    Read(Option<K>, Request<B>),
    /// The layer can't act on this route; the explanation has been logged.
    Fault(String, Request<B>),
}

impl<S, K, V, X, Mode, N> GuardService<S, K, V, X, Mode, N>
where
    K: Key,
    V: Send + Sync + 'static,
    X: ExtractKey<K>,
{
    /// The opening of both modes: finds the key.
    fn open<B>(&self, request: Request<B>) -> Opened<K, B> {
        if !reads(request.method()) {
            return Opened::Other(request);
        }
        let (mut head, body) = request.into_parts();
        let fault = match self.layer.extractor.extract(&mut head) {
            Extracted::Key(key) => {
                return Opened::Read(Some(key), Request::from_parts(head, body));
            }
            Extracted::Malformed => return Opened::Read(None, Request::from_parts(head, body)),
            Extracted::NoRoute => return Opened::Other(Request::from_parts(head, body)),
            Extracted::NoSuchParameter => Fault::NoSuchParameter,
            Extracted::RepeatedParameter => Fault::RepeatedParameter,
        };
        let explanation = self.layer.explain(fault, &head);
        Opened::Fault(explanation, Request::from_parts(head, body))
    }
}

impl<S, K, V, X, N, ReqB, ResB> Service<Request<ReqB>> for GuardService<S, K, V, X, CheckOnly, N>
where
    S: Service<Request<ReqB>, Response = Response<ResB>> + Clone,
    K: Key,
    V: Send + Sync + 'static,
    X: ExtractKey<K>,
    N: NotFoundReply<ResB>,
{
    type Response = Response<ResB>;
    type Error = S::Error;
    type Future = ResponseFuture<S, ReqB>;

    /// Always ready; see [the caveat](super#readiness).
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReqB>) -> Self::Future {
        match self.open(request) {
            Opened::Read(Some(key), request) if self.layer.guard.check(&key) == Verdict::Absent => {
                let (head, _) = request.into_parts();
                ResponseFuture::reply(self.layer.not_found.not_found(&head))
            }
            Opened::Other(request) | Opened::Read(_, request) | Opened::Fault(_, request) => {
                self.pass(request)
            }
        }
    }
}

impl<S, K, V, X, M, E, N, ReqB, ResB> Service<Request<ReqB>>
    for GuardService<S, K, V, X, ReadThrough<M, E>, N>
where
    S: Service<Request<ReqB>, Response = Response<ResB>> + Clone,
    K: Key,
    V: Value,
    X: ExtractKey<K>,
    M: 'static,
    E: ErrorReply<ResB>,
    N: NotFoundReply<ResB>,
    ResB: Default + 'static,
{
    type Response = Response<ResB>;
    type Error = S::Error;
    type Future = ResponseFuture<S, ReqB>;

    /// Always ready; see [the caveat](super#readiness).
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReqB>) -> Self::Future {
        let (key, request) = match self.open(request) {
            Opened::Read(key, request) => (key, request),
            Opened::Other(request) => return self.pass(request),
            Opened::Fault(explanation, _) => {
                return ResponseFuture::reply(reply::explain(explanation));
            }
        };
        let (mut head, body) = request.into_parts();
        let layer = &*self.layer;
        let entry = EntryId::of::<V, M>(layer.extractor.parameter());
        if entries::contains(&head.extensions, entry) {
            let explanation = layer.explain(Fault::IndistinctLayers, &head);
            return ResponseFuture::reply(reply::explain(explanation));
        }
        let Some(key) = key else {
            let reply = layer.not_found.clone();
            let reply: NotFoundFn<ResB> = Arc::new(move |head| reply.not_found(head));
            entries::add(&mut head.extensions, entry, Outcome::NoKey(Arc::new(reply)));
            return self.pass(Request::from_parts(head, body));
        };
        if layer.guard.check(&key) == Verdict::Absent {
            return ResponseFuture::reply(layer.not_found.not_found(&head));
        }
        let layer = Arc::clone(&self.layer);
        let decision = async move {
            match layer.guard.answer(&key).await {
                Ok(Answer::Found { value, stale, .. }) => {
                    entries::add(&mut head.extensions, entry, Outcome::Found(value));
                    let stale_header = layer.mode.stale_header.clone().filter(|_| stale);
                    Decision::Pass { head, stale_header }
                }
                Ok(Answer::Absent(_)) => Decision::Reply(layer.not_found.not_found(&head)),
                Err(error) => {
                    // The module that failed has logged it, within limits.
                    tracing::debug!(%error, "the guard could not answer");
                    Decision::Reply(layer.mode.on_error.error(&error))
                }
            }
        };
        // The clone has reserved nothing while the row is read.
        ResponseFuture::reading(Box::pin(decision), self.inner.clone(), body)
    }
}
