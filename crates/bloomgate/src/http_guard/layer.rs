//! The layer, and its settings.

use std::fmt;
use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use tower::Layer;

use super::reply::{self, NotFound, OnError};
use super::service::GuardService;
use crate::error::ReadError;
use crate::guard::{Guard, Value};
use crate::key::Key;

/// What a layer does with a request that the gate passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Hands it to the handler.
    GateOnly,
    /// Reads the row first.
    ReadThrough,
}

/// Puts a guard before a route; see [`Guard::layer`].
pub struct GuardLayer<K, V, X> {
    pub(super) guard: Guard<K, V>,
    pub(super) key: X,
    pub(super) mode: Mode,
    pub(super) not_found: NotFound,
    pub(super) on_error: OnError,
}

impl<K, V, X: Clone> Clone for GuardLayer<K, V, X> {
    fn clone(&self) -> Self {
        Self {
            guard: self.guard.clone(),
            key: self.key.clone(),
            mode: self.mode,
            not_found: Arc::clone(&self.not_found),
            on_error: Arc::clone(&self.on_error),
        }
    }
}

impl<K, V, X> fmt::Debug for GuardLayer<K, V, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardLayer").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl<K, V, X> GuardLayer<K, V, X> {
    pub(super) fn new(guard: Guard<K, V>, key: X) -> Self {
        Self {
            guard,
            key,
            mode: Mode::ReadThrough,
            not_found: Arc::new(reply::plain_not_found),
            on_error: Arc::new(reply::plain_error),
        }
    }

    /// Only checks: what the gate doesn't refuse reaches the handler as it came, and the handler
    /// asks the guard or the database itself.
    #[must_use]
    pub fn gate_only(mut self) -> Self {
        self.mode = Mode::GateOnly;
        self
    }

    /// The reply to a request whose key doesn't exist. Give the very reply that the handler gives,
    /// so that a refusal can't be told from it. Default: 404 without a body.
    #[must_use]
    pub fn not_found<R: IntoResponse>(
        mut self,
        reply: impl Fn() -> R + Send + Sync + 'static,
    ) -> Self {
        self.not_found = Arc::new(move || reply().into_response());
        self
    }

    /// The reply when the guard could not answer (reading mode). Default: 503 with `Retry-After: 1`
    /// for what may pass (see [`ReadError::is_temporary`]), otherwise 500.
    #[must_use]
    pub fn on_error(
        mut self,
        reply: impl Fn(&ReadError) -> Response + Send + Sync + 'static,
    ) -> Self {
        self.on_error = Arc::new(reply);
        self
    }
}

impl<S, K: Key, V: Value, X: Clone> Layer<S> for GuardLayer<K, V, X> {
    type Service = GuardService<S, K, V, X>;

    fn layer(&self, inner: S) -> Self::Service {
        self.guard.count_layer();
        GuardService::new(inner, Arc::new(self.clone()))
    }
}
