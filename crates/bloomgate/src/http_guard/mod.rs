//! Request → key → guard → response, as a tower [`Layer`](tower::Layer).
//!
//! ```
//! use axum::extract::Path;
//! use axum::http::StatusCode;
//! use axum::routing::get;
//! use axum::{Json, Router};
//! use bloomgate::{Guard, Guarded, path_param};
//!
//! # fn example(guard: Guard<i64, String>) -> Router {
//! // The handler runs only for names that exist, and gets the row.
//! let read_through = get(|name: Guarded<String>| async move { Json(name) });
//!
//! Router::new()
//!     .route("/names/{id}", read_through)
//!     .route_layer(guard.layer(path_param("id")).not_found(|| (StatusCode::NOT_FOUND, "no such name")))
//! # }
//! ```

mod extract;
mod future;
mod layer;
mod reply;
mod service;
#[cfg(test)]
mod tests;

use crate::guard::{Guard, Value};
use crate::key::Key;

pub use extract::{ExtractKey, PathParam, path_param};
pub use future::ResponseFuture;
pub use layer::GuardLayer;
pub use reply::{Guarded, GuardedRejection};
pub use service::GuardService;

impl<K: Key, V: Value> Guard<K, V> {
    /// A layer that reads through: a request whose key exists reaches the route's handler with the
    /// row (see [`Guarded`]), any other gets the not-found reply.
    ///
    /// Only GET and HEAD are touched, and only if `key` finds a key in the request. Everything
    /// else goes to the handler as it came. A layer acts on the routes that were added before it:
    /// use it with `route_layer`, after the route. To guard one method of a path with several, give
    /// it to that method alone, `get(show).route_layer(layer).put(change)`: on the whole path it
    /// would also come before axum's 405 for a method that isn't there.
    pub fn layer<X: ExtractKey<K>>(&self, key: X) -> GuardLayer<K, V, X> {
        GuardLayer::new(self.clone(), key)
    }
}
