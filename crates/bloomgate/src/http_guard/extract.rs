//! Extractors: the key of a request.

use http::request::Parts;

/// What an extractor finds in a request.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extracted<K> {
    /// The key.
    Key(K),
    /// The request names no key that could exist, such as `/products/abc` where ids are numbers. It
    /// reaches the handler as it came; a handler that takes `Guarded` answers with the layer's
    /// not-found reply.
    Malformed,
    /// No route matched, so there is nothing to guard. The request passes.
    NoRoute,
    /// The route has no such parameter: a mistake in the code. An error is logged; a gate-only
    /// layer passes the request, a reading layer answers 500.
    NoSuchParameter,
    /// The route has the parameter more than once, as nested routers can: a mistake in the code,
    /// treated as [`NoSuchParameter`](Self::NoSuchParameter).
    RepeatedParameter,
}

/// `None` is [`Extracted::Malformed`].
impl<K> From<Option<K>> for Extracted<K> {
    fn from(key: Option<K>) -> Self {
        key.map_or(Self::Malformed, Self::Key)
    }
}

/// Finds the key in a request's head, at once: the path of a refusal awaits nothing.
///
/// It must read the same key as the route's handler does, from the same text.
///
/// Every function from `&mut http::request::Parts` to an `Option` of the key, or to [`Extracted`],
/// is an extractor:
///
/// ```
/// # fn example(guard: bloomgate::Guard<i64, String>) {
/// use http::request::Parts;
///
/// let layer = guard.layer(|head: &mut Parts| -> Option<i64> {
///     head.headers.get("x-account")?.to_str().ok()?.parse().ok()
/// });
/// # let _ = layer;
/// # }
/// ```
pub trait ExtractKey<K>: Clone + Send + Sync + 'static {
    /// Finds the key.
    fn extract(&self, head: &mut Parts) -> Extracted<K>;

    /// The path parameter that holds the key, for messages and to distinguish two layers.
    fn parameter(&self) -> Option<&'static str> {
        None
    }
}

impl<K, F, R> ExtractKey<K> for F
where
    F: Fn(&mut Parts) -> R + Clone + Send + Sync + 'static,
    R: Into<Extracted<K>>,
{
    fn extract(&self, head: &mut Parts) -> Extracted<K> {
        self(head).into()
    }
}
