//! The service: refuses, passes, or reads.

use std::convert::Infallible;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::Response;
use http::Method;
use tower::Service;

use super::extract::ExtractKey;
use super::future::ResponseFuture;
use super::layer::{GuardLayer, Mode};
use super::reply::{Guarded, NoKey};
use crate::answer::{Answer, Verdict};
use crate::guard::Value;
use crate::key::Key;

/// A service with a guard before it; made by [`GuardLayer`].
pub struct GuardService<S, K, V, X> {
    inner: S,
    layer: Arc<GuardLayer<K, V, X>>,
}

impl<S, K, V, X> GuardService<S, K, V, X> {
    pub(super) fn new(inner: S, layer: Arc<GuardLayer<K, V, X>>) -> Self {
        Self { inner, layer }
    }
}

impl<S: Clone, K, V, X> Clone for GuardService<S, K, V, X> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), layer: Arc::clone(&self.layer) }
    }
}

impl<S: fmt::Debug, K, V, X> fmt::Debug for GuardService<S, K, V, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, K, V, X> Service<Request> for GuardService<S, K, V, X>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    K: Key,
    V: Value,
    X: ExtractKey<K>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return ResponseFuture::pass(self.inner.call(request));
        }
        let (mut parts, body) = request.into_parts();
        let Some(key) = self.layer.key.extract(&mut parts) else {
            if self.layer.mode == Mode::ReadThrough {
                parts.extensions.insert(NoKey(Arc::clone(&self.layer.not_found)));
            }
            return ResponseFuture::pass(self.inner.call(Request::from_parts(parts, body)));
        };
        if self.layer.guard.check(&key) == Verdict::Absent {
            // The service was told to be ready for a call that doesn't come; what it holds for
            // that (a permit, say) goes with it.
            self.inner = self.inner.clone();
            return ResponseFuture::reply((self.layer.not_found)());
        }
        if self.layer.mode == Mode::GateOnly {
            return ResponseFuture::pass(self.inner.call(Request::from_parts(parts, body)));
        }
        // Readiness belongs to the very instance that was polled: it goes along, a clone stays.
        let clone = self.inner.clone();
        let mut ready = mem::replace(&mut self.inner, clone);
        let layer = Arc::clone(&self.layer);
        ResponseFuture::read(async move {
            match layer.guard.answer(&key).await {
                Ok(Answer::Found { value, .. }) => {
                    parts.extensions.insert(Guarded(value));
                    ready.call(Request::from_parts(parts, body)).await
                }
                Ok(Answer::Absent(_)) => Ok((layer.not_found)()),
                Err(error) => {
                    // The room that failed has told the log.
                    tracing::debug!(%error, "the guard could not answer");
                    Ok((layer.on_error)(&error))
                }
            }
        })
    }
}
