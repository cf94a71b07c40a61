//! The response, on its way.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::response::Response;
use futures_util::future::BoxFuture;
use pin_project_lite::pin_project;

pin_project! {
    /// The response of a [`GuardService`](super::GuardService). A refusal is ready at the first
    /// poll; only reading takes a box.
    pub struct ResponseFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F> {
        Reply { response: Option<Response> },
        Pass { #[pin] inner: F },
        Read { reading: BoxFuture<'static, Result<Response, Infallible>> },
    }
}

impl<F> ResponseFuture<F> {
    pub(super) fn reply(response: Response) -> Self {
        Self { state: State::Reply { response: Some(response) } }
    }

    pub(super) fn pass(inner: F) -> Self {
        Self { state: State::Pass { inner } }
    }

    pub(super) fn read(
        reading: impl Future<Output = Result<Response, Infallible>> + Send + 'static,
    ) -> Self {
        Self { state: State::Read { reading: Box::pin(reading) } }
    }
}

impl<F> fmt::Debug for ResponseFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

impl<F: Future<Output = Result<Response, Infallible>>> Future for ResponseFuture<F> {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProjection::Reply { response } => match response.take() {
                Some(response) => Poll::Ready(Ok(response)),
                // Polled again after it was ready, which nobody may do; never ready again.
                None => Poll::Pending,
            },
            StateProjection::Pass { inner } => Poll::Ready(ready!(inner.poll(cx))),
            StateProjection::Read { reading } => reading.as_mut().poll(cx),
        }
    }
}
