//! The extractor of an axum path parameter.

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{FromRequestParts as _, MatchedPath, RawPathParams};
use futures_util::FutureExt as _;
use http::request::Parts;

use super::extract::{ExtractKey, Extracted};
use crate::key::{CanonicalText, ParseKey};

/// The path parameter of this name, percent-decoded by axum and read by [`ParseKey::parse_key`],
/// as the handler's `Path` reads it.
///
/// A route that has no such parameter, or has it twice, is a mistake that is never guessed away: see
/// [the rules](super#rules).
#[must_use]
pub fn path_param(name: &'static str) -> PathParam {
    PathParam { name }
}

/// See [`path_param`].
#[derive(Clone, Copy, Debug)]
pub struct PathParam {
    name: &'static str,
}

impl PathParam {
    /// Reads canonical spellings only ([`CanonicalText`]) and takes any other for malformed: `7`
    /// is a key, `007` and `+7` aren't.
    ///
    /// Other spellings then reach a gate-only layer's handler unchecked, so the handler must not
    /// take them for keys either. A handler that takes [`Guarded`](super::Guarded) answers them
    /// with the layer's not-found reply.
    #[must_use]
    pub fn strict(self) -> StrictPathParam {
        StrictPathParam { name: self.name }
    }
}

/// See [`PathParam::strict`].
#[derive(Clone, Copy, Debug)]
pub struct StrictPathParam {
    name: &'static str,
}

impl<K: ParseKey> ExtractKey<K> for PathParam {
    fn extract(&self, head: &mut Parts) -> Extracted<K> {
        extract(self.name, head, K::parse_key)
    }

    fn parameter(&self) -> Option<&'static str> {
        Some(self.name)
    }
}

impl<K: CanonicalText> ExtractKey<K> for StrictPathParam {
    fn extract(&self, head: &mut Parts) -> Extracted<K> {
        extract(self.name, head, K::parse_canonical)
    }

    fn parameter(&self) -> Option<&'static str> {
        Some(self.name)
    }
}

fn extract<K>(name: &str, head: &mut Parts, parse: fn(&str) -> Option<K>) -> Extracted<K> {
    // axum's extractor only looks into the request, so it is ready at once.
    let params = match RawPathParams::from_request_parts(head, &()).now_or_never() {
        Some(Ok(params)) => params,
        // Which parameter it was is private. The handler's `Path` rejects all of them.
        Some(Err(RawPathParamsRejection::InvalidUtf8InPathParam(_))) => {
            return Extracted::Malformed;
        }
        // No router has routed this request.
        Some(Err(_)) | None => return Extracted::NoSuchParameter,
    };
    let mut texts = params.iter().filter(|(other, _)| *other == name).map(|(_, text)| text);
    match (texts.next(), texts.next()) {
        (Some(text), None) => parse(text).into(),
        // Under nesting axum lists the outer one first; the handler may mean either.
        (Some(_), Some(_)) => Extracted::RepeatedParameter,
        // A router's fallback, which `Router::layer` wraps as well.
        (None, _)
            if params.iter().next().is_none() && head.extensions.get::<MatchedPath>().is_none() =>
        {
            Extracted::NoRoute
        }
        (None, _) => Extracted::NoSuchParameter,
    }
}
