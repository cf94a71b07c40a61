//! The layer with its settings.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::request::Parts;
use http::{HeaderName, Response};
use tower_layer::Layer;

use super::fault::FaultLog;
use super::mode::{CheckOnly, ReadThrough};
use super::reply::{CustomError, CustomNotFound, DefaultReply};
use super::service::GuardService;
use crate::error::ReadError;
use crate::guard::Guard;
use crate::key::Key;

/// Puts a guard before a service; made by [`Guard::layer`] and [`Guard::gate_layer`].
///
/// `X` finds the key, `Mode` is [`ReadThrough`] or [`CheckOnly`], `N` makes the not-found reply.
pub struct GuardLayer<K, V, X, Mode = ReadThrough, N = DefaultReply> {
    pub(super) guard: Guard<K, V>,
    pub(super) extractor: X,
    pub(super) mode: Mode,
    pub(super) not_found: N,
    pub(super) uses: Arc<Uses>,
}

/// What the services of a layer share. axum makes them anew for every connection, with
/// `Handler::layer` for every request.
#[derive(Debug, Default)]
pub(super) struct Uses {
    counted: AtomicBool,
    pub(super) faults: FaultLog,
}

impl<K, V, X: Clone, Mode: Clone, N: Clone> Clone for GuardLayer<K, V, X, Mode, N> {
    fn clone(&self) -> Self {
        Self {
            guard: self.guard.clone(),
            extractor: self.extractor.clone(),
            mode: self.mode.clone(),
            not_found: self.not_found.clone(),
            uses: Arc::clone(&self.uses),
        }
    }
}

impl<K, V, X, Mode: fmt::Debug, N> fmt::Debug for GuardLayer<K, V, X, Mode, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardLayer")
            .field("guard", &self.guard)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl<K, V, X, Mode> GuardLayer<K, V, X, Mode> {
    pub(super) fn new(guard: Guard<K, V>, extractor: X, mode: Mode) -> Self {
        Self { guard, extractor, mode, not_found: DefaultReply, uses: Arc::default() }
    }
}

impl<K, V, X, Mode, N> GuardLayer<K, V, X, Mode, N> {
    /// The reply to a request whose key doesn't exist: the very reply that the handler gives, so
    /// that a refusal can't be distinguished from it. Send `Cache-Control: no-store` with it, or a cache on
    /// the way may go on answering 404 once the row exists. Default: [`DefaultReply`].
    ///
    /// `reply` is a function without arguments, or of the request's head:
    ///
    /// ```
    /// # fn example(guard: bloomgate::Guard<i64, String>) {
    /// use axum::http::{StatusCode, header::CACHE_CONTROL, request::Parts};
    /// use bloomgate::path_param;
    ///
    /// let plain = guard.layer(path_param("id")).not_found(|| {
    ///     (StatusCode::NOT_FOUND, [(CACHE_CONTROL, "no-store")], "no such name")
    /// });
    /// let with_path = guard.layer(path_param("id")).not_found(|head: &Parts| {
    ///     let text = format!("nothing at {}", head.uri.path());
    ///     (StatusCode::NOT_FOUND, [(CACHE_CONTROL, "no-store")], text)
    /// });
    /// # let _ = (plain, with_path);
    /// # }
    /// ```
    #[cfg(feature = "axum")]
    #[must_use]
    pub fn not_found<A>(
        self,
        reply: impl super::NotFoundHandler<A>,
    ) -> GuardLayer<K, V, X, Mode, CustomNotFound<axum::body::Body>> {
        self.not_found_response(move |head| reply.response(head))
    }

    /// As [`not_found`](Self::not_found), for a response with any type of body.
    #[must_use]
    pub fn not_found_response<B>(
        self,
        reply: impl Fn(&Parts) -> Response<B> + Send + Sync + 'static,
    ) -> GuardLayer<K, V, X, Mode, CustomNotFound<B>> {
        GuardLayer {
            guard: self.guard,
            extractor: self.extractor,
            mode: self.mode,
            not_found: CustomNotFound(Arc::new(reply)),
            uses: self.uses,
        }
    }

    fn with_mode<M>(self, mode: impl FnOnce(Mode) -> M) -> GuardLayer<K, V, X, M, N> {
        GuardLayer {
            guard: self.guard,
            extractor: self.extractor,
            mode: mode(self.mode),
            not_found: self.not_found,
            uses: self.uses,
        }
    }
}

impl<K, V, X, M, E, N> GuardLayer<K, V, X, ReadThrough<M, E>, N> {
    /// Only checks, as [`Guard::gate_layer`].
    #[must_use]
    pub fn gate_only(self) -> GuardLayer<K, V, X, CheckOnly, N> {
        self.with_mode(|_| CheckOnly)
    }

    /// Marks the rows of this layer with the type `Marker`, so that a handler behind several layers
    /// with one type of value can distinguish them:
    ///
    /// ```
    /// # #[cfg(feature = "axum")] use axum::{Router, routing::get};
    /// # #[cfg(feature = "axum")] fn example(guard: bloomgate::Guard<i64, String>) -> Router {
    /// use bloomgate::{Guarded, path_param};
    ///
    /// struct Owner;
    /// struct Friend;
    ///
    /// async fn show(owner: Guarded<String, Owner>, friend: Guarded<String, Friend>) -> String {
    ///     format!("{} is a friend of {}", *friend, *owner)
    /// }
    ///
    /// Router::new()
    ///     .route("/users/{owner}/friends/{friend}", get(show))
    ///     .route_layer(guard.layer(path_param("owner")).marked::<Owner>())
    ///     .route_layer(guard.layer(path_param("friend")).marked::<Friend>())
    /// # }
    /// ```
    #[must_use]
    pub fn marked<Marker: 'static>(self) -> GuardLayer<K, V, X, ReadThrough<Marker, E>, N> {
        self.with_mode(|mode| ReadThrough {
            on_error: mode.on_error,
            stale_header: mode.stale_header,
            marker: PhantomData,
        })
    }

    /// Adds the header `name: true` to the handler's response when the row was stale: its time to
    /// live was over, and the database could not be asked for a fresh one. Default: no header.
    #[must_use]
    pub fn stale_header(self, name: HeaderName) -> Self {
        self.with_mode(|mode| ReadThrough { stale_header: Some(name), ..mode })
    }

    /// The reply when the guard could not answer. Default: [`DefaultReply`].
    #[cfg(feature = "axum")]
    #[must_use]
    pub fn on_error<R: axum::response::IntoResponse>(
        self,
        reply: impl Fn(&ReadError) -> R + Send + Sync + 'static,
    ) -> GuardLayer<K, V, X, ReadThrough<M, CustomError<axum::body::Body>>, N> {
        self.on_error_response(move |error| reply(error).into_response())
    }

    /// As [`on_error`](Self::on_error), for a response with any type of body.
    #[must_use]
    pub fn on_error_response<B>(
        self,
        reply: impl Fn(&ReadError) -> Response<B> + Send + Sync + 'static,
    ) -> GuardLayer<K, V, X, ReadThrough<M, CustomError<B>>, N> {
        self.with_mode(|mode| ReadThrough {
            on_error: CustomError(Arc::new(reply)),
            stale_header: mode.stale_header,
            marker: PhantomData,
        })
    }
}

impl<S, K, V, X, Mode, N> Layer<S> for GuardLayer<K, V, X, Mode, N>
where
    K: Key,
    V: Send + Sync + 'static,
    X: Clone,
    Mode: Clone,
    N: Clone,
{
    type Service = GuardService<S, K, V, X, Mode, N>;

    fn layer(&self, inner: S) -> Self::Service {
        // A load first: axum's `Handler::layer` comes here with every request, on all threads.
        let counted = &self.uses.counted;
        if !counted.load(Ordering::Relaxed) && !counted.swap(true, Ordering::Relaxed) {
            self.guard.count_layer();
        }
        GuardService::new(inner, self.clone())
    }
}
