//! Finds the key in a request.

use axum::extract::{FromRequestParts as _, RawPathParams};
use futures_util::FutureExt as _;
use http::request::Parts;

use crate::key::{Key, ParseKey};

/// Finds a key in a request, at once: nothing may be awaited on the refusal path.
///
/// It must read the same key as the route's handler does, from the same text. `None` means that the
/// request has no key that could exist; it then goes to the handler as it came.
pub trait ExtractKey<K>: Clone + Send + Sync + 'static {
    /// The key, if there is one.
    fn extract(&self, parts: &mut Parts) -> Option<K>;
}

/// Any function of the request's head.
impl<K: Key, F> ExtractKey<K> for F
where
    F: Fn(&mut Parts) -> Option<K> + Clone + Send + Sync + 'static,
{
    fn extract(&self, parts: &mut Parts) -> Option<K> {
        self(parts)
    }
}

/// See [`path_param`].
#[derive(Clone, Copy, Debug)]
pub struct PathParam(&'static str);

/// The path parameter of this name, percent-decoded by axum and read by
/// [`ParseKey::parse_key`].
#[must_use]
pub fn path_param(parameter: &'static str) -> PathParam {
    PathParam(parameter)
}

impl<K: ParseKey> ExtractKey<K> for PathParam {
    fn extract(&self, parts: &mut Parts) -> Option<K> {
        // The extractor only looks into the request, so it is ready at once.
        let params = RawPathParams::from_request_parts(parts, &()).now_or_never()?.ok()?;
        let (_, text) = params.iter().find(|(name, _)| *name == self.0)?;
        K::parse_key(text)
    }
}
