//! Replies that a layer makes in the handler's place.

use std::fmt;
use std::sync::Arc;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};

use crate::error::ReadError;

/// A function that makes a not-found reply.
pub(super) type NotFoundFn<B> = Arc<dyn Fn(&Parts) -> Response<B> + Send + Sync>;
/// A function that makes an error reply.
pub(super) type ErrorFn<B> = Arc<dyn Fn(&ReadError) -> Response<B> + Send + Sync>;

/// Makes the not-found reply of a layer before services with response body `B`.
///
/// Implemented by [`DefaultReply`], and by what [`GuardLayer`](super::GuardLayer)'s setters make of
/// a function.
pub trait NotFoundReply<B>: sealed::Reply {
    /// The reply to the request with this head.
    fn not_found(&self, head: &Parts) -> Response<B>;
}

/// Makes the reply of a reading layer whose guard could not answer.
///
/// Implemented by [`DefaultReply`], and by what [`GuardLayer`](super::GuardLayer)'s setters make of
/// a function.
pub trait ErrorReply<B>: sealed::Reply {
    /// The reply to this error.
    fn error(&self, error: &ReadError) -> Response<B>;
}

mod sealed {
    pub trait Reply: Clone + Send + Sync + 'static {}

    impl Reply for super::DefaultReply {}
    impl<B: 'static> Reply for super::CustomNotFound<B> {}
    impl<B: 'static> Reply for super::CustomError<B> {}
}

/// The default replies, without a body.
///
/// Not found: 404 with `Cache-Control: no-store`, so that no cache on the way goes on answering 404
/// once the row exists. Errors: 503 with `Retry-After: 1` for what may pass (see
/// [`ReadError::is_temporary`]), otherwise 500; no details.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultReply;

impl<B: Default> NotFoundReply<B> for DefaultReply {
    fn not_found(&self, _: &Parts) -> Response<B> {
        let mut response = with_status(StatusCode::NOT_FOUND, B::default());
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

impl<B: Default> ErrorReply<B> for DefaultReply {
    fn error(&self, error: &ReadError) -> Response<B> {
        if !error.is_temporary() {
            return with_status(StatusCode::INTERNAL_SERVER_ERROR, B::default());
        }
        let mut response = with_status(StatusCode::SERVICE_UNAVAILABLE, B::default());
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        response
    }
}

/// A not-found reply of the app's own.
pub struct CustomNotFound<B>(pub(super) NotFoundFn<B>);

impl<B> Clone for CustomNotFound<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B> fmt::Debug for CustomNotFound<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomNotFound").finish_non_exhaustive()
    }
}

impl<B: 'static> NotFoundReply<B> for CustomNotFound<B> {
    fn not_found(&self, head: &Parts) -> Response<B> {
        (self.0)(head)
    }
}

/// An error reply of the app's own.
pub struct CustomError<B>(pub(super) ErrorFn<B>);

impl<B> Clone for CustomError<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B> fmt::Debug for CustomError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomError").finish_non_exhaustive()
    }
}

impl<B: 'static> ErrorReply<B> for CustomError<B> {
    fn error(&self, error: &ReadError) -> Response<B> {
        (self.0)(error)
    }
}

/// A function that makes axum's not-found reply: without arguments, or from the request's head.
/// `A` tells the two apart and is always inferred.
#[cfg(feature = "axum")]
pub trait NotFoundHandler<A>: Send + Sync + 'static {
    /// The reply to the request with this head.
    fn response(&self, head: &Parts) -> axum::response::Response;
}

#[cfg(feature = "axum")]
impl<F, R> NotFoundHandler<()> for F
where
    F: Fn() -> R + Send + Sync + 'static,
    R: axum::response::IntoResponse,
{
    fn response(&self, _: &Parts) -> axum::response::Response {
        self().into_response()
    }
}

#[cfg(feature = "axum")]
impl<F, R> NotFoundHandler<(Parts,)> for F
where
    F: Fn(&Parts) -> R + Send + Sync + 'static,
    R: axum::response::IntoResponse,
{
    fn response(&self, head: &Parts) -> axum::response::Response {
        self(head).into_response()
    }
}

/// A 500 that explains a mistake in the code, with the text as its body where `B` is axum's body.
pub(super) fn explain<B: Default + 'static>(text: String) -> Response<B> {
    let Some(body) = body_of(text) else {
        return with_status(StatusCode::INTERNAL_SERVER_ERROR, B::default());
    };
    let mut response = with_status(StatusCode::INTERNAL_SERVER_ERROR, body);
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// `text` as a body, if `B` is axum's body. Other bodies have no constructor in common.
#[cfg(feature = "axum")]
fn body_of<B: 'static>(text: String) -> Option<B> {
    let mut body = Some(axum::body::Body::from(text));
    (&mut body as &mut dyn std::any::Any).downcast_mut::<Option<B>>().and_then(Option::take)
}

#[cfg(not(feature = "axum"))]
fn body_of<B>(_: String) -> Option<B> {
    None
}

fn with_status<B>(status: StatusCode, body: B) -> Response<B> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}
