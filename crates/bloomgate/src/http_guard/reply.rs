//! What is answered in the handler's place, and what the handler is handed.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use serde::{Serialize, Serializer};

use crate::error::Error;

/// Makes the not-found reply.
pub(super) type NotFound = Arc<dyn Fn() -> Response + Send + Sync>;
/// Makes the reply to a guard that could not answer.
pub(super) type OnError = Arc<dyn Fn(&Error) -> Response + Send + Sync>;

/// The row that a reading layer has found, for the route's handler.
#[derive(Debug)]
pub struct Guarded<V>(pub Arc<V>);

impl<V> Clone for Guarded<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V> Deref for Guarded<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.0
    }
}

impl<V: Serialize> Serialize for Guarded<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Left in the request by a layer that found no key in it.
#[derive(Clone)]
pub(super) struct NoKey(pub(super) NotFound);

/// OpenReason a handler that wants a row gets none.
pub struct GuardedRejection(Rejected);

enum Rejected {
    NoKey(NotFound),
    NoLayer,
}

impl std::fmt::Debug for GuardedRejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Rejected::NoKey(_) => "GuardedRejection(no key in the request)",
            Rejected::NoLayer => "GuardedRejection(no guard on the route)",
        })
    }
}

/// The layer's not-found reply if the request had no key. On a route that no reading layer guards
/// (or for a method that it doesn't touch), a 500 that says so.
impl IntoResponse for GuardedRejection {
    fn into_response(self) -> Response {
        match self.0 {
            Rejected::NoKey(not_found) => not_found(),
            Rejected::NoLayer => {
                tracing::error!(
                    "a handler takes Guarded<V>, but no reading guard layer with that type of \
                     value acts on this route and method; add it with route_layer after the route"
                );
                (StatusCode::INTERNAL_SERVER_ERROR, "no guard on this route").into_response()
            }
        }
    }
}

impl<V: Send + Sync + 'static, S: Sync> FromRequestParts<S> for Guarded<V> {
    type Rejection = GuardedRejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, GuardedRejection> {
        if let Some(found) = parts.extensions.get::<Guarded<V>>() {
            return Ok(found.clone());
        }
        Err(GuardedRejection(match parts.extensions.get::<NoKey>() {
            Some(NoKey(not_found)) => Rejected::NoKey(Arc::clone(not_found)),
            None => Rejected::NoLayer,
        }))
    }
}

/// The default not-found reply: 404, no body, as axum's own.
pub(super) fn plain_not_found() -> Response {
    StatusCode::NOT_FOUND.into_response()
}

/// The default error reply: 503 with `Retry-After` for what may pass, otherwise 500; no details.
pub(super) fn plain_error(error: &Error) -> Response {
    if error.is_temporary() {
        let retry = (header::RETRY_AFTER, HeaderValue::from_static("1"));
        (StatusCode::SERVICE_UNAVAILABLE, [retry]).into_response()
    } else {
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }
}
