//! The response future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

/// The outcome of reading.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once, never kept")]
pub(super) enum Decision<R> {
    /// The inner service is called; its response gets the header, if there is one.
    Pass { head: Parts, stale_header: Option<HeaderName> },
    /// The layer replies.
    Reply(R),
}

pin_project! {
    /// The response future of a [`GuardService`](super::GuardService).
    ///
    /// A refusal is ready at the first poll. Only reading takes a box.
    pub struct ResponseFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        state: State<S, B>,
        stale_header: Option<HeaderName>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, B>
    where
        S: Service<Request<B>>,
    {
        // Ready; `None` once it was returned.
        Done { result: Option<Result<S::Response, S::Error>> },
        Reading {
            decision: BoxFuture<'static, Decision<S::Response>>,
            inner: Option<S>,
            body: Option<B>,
        },
        // The inner service isn't ready.
        Waiting { inner: S, request: Option<Request<B>> },
        Called { #[pin] future: S::Future },
    }
}

impl<S: Service<Request<B>>, B> ResponseFuture<S, B> {
    fn new(state: State<S, B>) -> Self {
        Self { state, stale_header: None }
    }

    pub(super) fn reply(response: S::Response) -> Self {
        Self::new(State::Done { result: Some(Ok(response)) })
    }

    pub(super) fn failed(error: S::Error) -> Self {
        Self::new(State::Done { result: Some(Err(error)) })
    }

    pub(super) fn called(future: S::Future) -> Self {
        Self::new(State::Called { future })
    }

    pub(super) fn waiting(inner: S, request: Request<B>) -> Self {
        Self::new(State::Waiting { inner, request: Some(request) })
    }

    pub(super) fn reading(
        decision: BoxFuture<'static, Decision<S::Response>>,
        inner: S,
        body: B,
    ) -> Self {
        Self::new(State::Reading { decision, inner: Some(inner), body: Some(body) })
    }
}

impl<S: Service<Request<B>>, B> fmt::Debug for ResponseFuture<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

impl<S, B, R> Future for ResponseFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Output = Result<Response<R>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                StateProjection::Done { result } => {
                    // Polled again after it was ready, which futures needn't allow: never ready.
                    return result.take().map_or(Poll::Pending, Poll::Ready);
                }
                StateProjection::Reading { decision, inner, body } => {
                    match (ready!(decision.as_mut().poll(cx)), inner.take(), body.take()) {
                        (Decision::Pass { head, stale_header }, Some(inner), Some(body)) => {
                            *this.stale_header = stale_header;
                            let request = Some(Request::from_parts(head, body));
                            State::Waiting { inner, request }
                        }
                        (Decision::Reply(response), ..) => {
                            State::Done { result: Some(Ok(response)) }
                        }
                        // Not reached: this state is left at its first decision.
                        (Decision::Pass { .. }, ..) => State::Done { result: None },
                    }
                }
                StateProjection::Waiting { inner, request } => {
                    match (ready!(inner.poll_ready(cx)), request.take()) {
                        (Ok(()), Some(request)) => State::Called { future: inner.call(request) },
                        (Err(error), _) => State::Done { result: Some(Err(error)) },
                        // Not reached: this state is left with its request.
                        (Ok(()), None) => State::Done { result: None },
                    }
                }
                StateProjection::Called { future } => {
                    let mut response = ready!(future.poll(cx))?;
                    if let Some(name) = this.stale_header.take() {
                        response.headers_mut().insert(name, HeaderValue::from_static("true"));
                    }
                    return Poll::Ready(Ok(response));
                }
            };
            this.state.set(next);
        }
    }
}
