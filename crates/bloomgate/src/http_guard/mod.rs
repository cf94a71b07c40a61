//! A guard before the routes of a service: HTTP middleware that refuses requests for keys that do
//! not exist.
//!
//! [`Guard::layer`] makes a [`tower::Layer`](tower_layer::Layer) that *reads through*: the inner
//! service is called only for keys that exist, and gets the row. [`Guard::gate_layer`] makes one
//! that only *checks*: what the gate doesn't refuse reaches the inner service as it came.
//!
//! # Example
//!
#![cfg_attr(feature = "axum", doc = "```")]
#![cfg_attr(not(feature = "axum"), doc = "```text")]
//! use axum::http::{StatusCode, header::CACHE_CONTROL};
//! use axum::routing::get;
//! use axum::{Json, Router, extract::Path};
//! use bloomgate::{Guard, Guarded, loader, path_param, warm_up};
//! use tower::ServiceExt as _;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let guard: Guard<i64, String> = Guard::builder("names")
//!     .source(warm_up::Keys::new([1_i64, 2, 3]))
//!     .loader(loader::from_fn(|id: i64| async move {
//!         Ok::<_, std::io::Error>((id <= 3).then(|| format!("name of {id}")))
//!     }))
//!     .build()
//!     .await?;
//!
//! let not_found = || (StatusCode::NOT_FOUND, [(CACHE_CONTROL, "no-store")], "no such name");
//!
//! // The handler runs only for names that exist, and gets the row.
//! let show = get(|name: Guarded<String>| async move { Json(name) });
//! // This one asks the guard, or a database, itself.
//! let length = get(|Path(id): Path<i64>| async move { id.to_string().len().to_string() });
//!
//! let app: Router = Router::new()
//!     .route("/names/{id}", show.route_layer(guard.layer(path_param("id")).not_found(not_found)))
//!     .route(
//!         "/names/{id}/length",
//!         length.route_layer(guard.gate_layer(path_param("id")).not_found(not_found)),
//!     );
//!
//! let ask = |path: &'static str| {
//!     let request = axum::extract::Request::get(path).body(axum::body::Body::empty());
//!     let app = app.clone();
//!     async move { Ok::<_, axum::http::Error>(app.oneshot(request?).await) }
//! };
//! assert_eq!(ask("/names/2").await??.status(), StatusCode::OK);
//! assert_eq!(ask("/names/4").await??.status(), StatusCode::NOT_FOUND);
//! # Ok(()) }
//! ```
//!
//! # Rules
//!
//! 1. Only GET and HEAD are touched. A request with another method reaches the inner service as it
//!    came.
//! 2. The layer reads a key exactly as the handler's `Path` does ([`ParseKey`](crate::ParseKey)):
//!    `7`, `007`, `+7` and `%37` are one integer. [`PathParam::strict`] admits canonical spellings
//!    only.
//! 3. A malformed key, `abc` for a number, reaches the handler as it came, since the handler rejects
//!    it. A handler that takes [`Guarded`] answers it with the layer's not-found reply.
//! 4. A key that doesn't exist gets the layer's not-found reply, whether the gate, a cache or the
//!    database knew it, byte for byte the same.
//! 5. A guard that can't answer replies 503 or 500, never 404.
//! 6. A row reaches only the handler that asks for it: [`Guarded<V>`](Guarded) is the row of the one
//!    reading layer with values `V` that acts on the route. Several of them are distinguished by
//!    markers ([`GuardLayer::marked`]); a handler that doesn't say which one it means gets a 500. Two
//!    layers with the same type of value, parameter and marker are refused with a 500.
//! 7. A parameter that the route doesn't have, or has twice under nesting, is a mistake in the code.
//!    An error that names the route is logged, at most once in five seconds; a reading layer answers
//!    500, a gate-only layer passes the request.
//!
//! # Where to put the layer
//!
//! A layer acts on the routes that were added before it, so use `route_layer` after the route.
//! `Router::layer` would also wrap the fallback, and routes without the parameter. To guard one method
//! of a path that has several, give the layer to that method alone,
//! `get(show).route_layer(layer).put(change)`: on the whole path it would also come before axum's 405
//! for a method that isn't there.
//!
//! A layer for compression, tracing or CORS belongs outside of the guard, so that it also sees the
//! replies that the guard makes itself.
//!
//! # Without axum
//!
//! With the feature `tower` alone the layer works on every
//! [`Service<Request<B>>`](tower_service::Service) that answers `Response<R>`: over hyper, tonic or
//! another framework. The key comes from a function of the request's head ([`ExtractKey`]), replies
//! are responses with the service's own body type ([`GuardLayer::not_found_response`]), and the row is
//! taken with [`Guarded::from_extensions`]. The default replies, and a reading layer's report of a
//! mistake in the code, need a body type with a [`Default`]. The inner service's errors pass through.
//!
//! gRPC requests are POSTs. In a tonic server the layer therefore acts only on what is served beside
//! gRPC.
//!
//! # Readiness
//!
//! The layer's services are always ready. A refused request neither clones nor reserves anything of
//! the inner service, so a crowd of refused requests can't keep others from a concurrency limit. The
//! inner service is asked for its readiness when a request passes, and called at once, without a
//! clone, if it is ready; otherwise the response future waits for it, and hands on its error. So
//! back-pressure shows as waiting responses: a `load_shed` must stand inside of the guard to see it.
//!
//! # Cost
//!
//! A refusal costs the extraction (with [`path_param`], one allocation for axum's list of
//! parameters), a [`Guard::check`] and the reply. Reading adds a clone of the inner service and one
//! boxed future to what [`Guard::get`] costs.

mod entries;
mod extract;
mod fault;
mod future;
mod guarded;
#[cfg(feature = "axum")]
mod guarded_axum;
mod layer;
mod mode;
#[cfg(feature = "axum")]
mod path_param;
mod reply;
mod service;
#[cfg(test)]
mod tests;

use crate::guard::{Guard, Value};
use crate::key::Key;

pub use extract::{ExtractKey, Extracted};
pub use future::ResponseFuture;
pub use guarded::{Guarded, NoRow};
#[cfg(feature = "axum")]
pub use guarded_axum::GuardedRejection;
pub use layer::GuardLayer;
pub use mode::{CheckOnly, ReadThrough};
#[cfg(feature = "axum")]
pub use path_param::{PathParam, StrictPathParam, path_param};
#[cfg(feature = "axum")]
pub use reply::NotFoundHandler;
pub use reply::{CustomError, CustomNotFound, DefaultReply, ErrorReply, NotFoundReply};
pub use service::GuardService;

impl<K: Key, V: Value> Guard<K, V> {
    /// A layer that reads through: a request whose key exists reaches the inner service with the
    /// row (see [`Guarded`]), any other gets the not-found reply.
    ///
    /// Only GET and HEAD are touched; see [the rules](crate::http_guard#rules). In axum, use it with
    /// `route_layer`, after the route.
    pub fn layer<X: ExtractKey<K>>(&self, key: X) -> GuardLayer<K, V, X> {
        GuardLayer::new(self.clone(), key, ReadThrough::new())
    }
}

impl<K: Key, V: Send + Sync + 'static> Guard<K, V> {
    /// A layer that only checks: what the gate doesn't refuse reaches the inner service as it came,
    /// which asks the guard or the database itself.
    ///
    /// Only GET and HEAD are touched; see [the rules](crate::http_guard#rules). In axum, use it with
    /// `route_layer`, after the route.
    pub fn gate_layer<X: ExtractKey<K>>(&self, key: X) -> GuardLayer<K, V, X, CheckOnly> {
        GuardLayer::new(self.clone(), key, CheckOnly)
    }
}
