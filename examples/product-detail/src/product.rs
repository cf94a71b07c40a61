//! A product, and its id.

use std::borrow::Cow;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::response::Response;
use bloomgate::{CanonicalText, Key, ParseKey};
use serde::{Deserialize, Serialize};

use crate::problem::product_not_found;

/// The name of the path parameter that holds an id.
pub(crate) const ID: &str = "id";

/// A product's id, at least 1 when it comes from a request.
///
/// The guard's layer and the handlers read it from the path with the same function, so that they
/// can't disagree on what an id is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
#[serde(transparent)]
#[sqlx(transparent)]
pub(crate) struct ProductId(pub(crate) i64);

impl Key for ProductId {
    fn kind() -> Cow<'static, str> {
        i64::kind()
    }

    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        self.0.with_bytes(f)
    }
}

bloomgate::sql_key!(ProductId);

/// Decimal digits without a sign or leading zeros: `007` and `+7` are not other spellings of 7 but
/// no ids at all. Neither are 0 and negative numbers, which the database never assigns.
impl ParseKey for ProductId {
    fn parse_key(text: &str) -> Option<Self> {
        i64::parse_canonical(text).filter(|id| *id >= 1).map(Self)
    }
}

/// What isn't an id has no product: the same 404 as for an id that doesn't exist.
impl<S: Send + Sync> FromRequestParts<S> for ProductId {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let params = RawPathParams::from_request_parts(parts, state).await;
        let params = params.map_err(|_not_utf8| product_not_found())?;
        params
            .iter()
            .find(|(name, _)| *name == ID)
            .and_then(|(_, text)| Self::parse_key(text))
            .ok_or_else(product_not_found)
    }
}

/// A product.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, sqlx::FromRow)]
pub(crate) struct Product {
    pub(crate) id: ProductId,
    pub(crate) name: String,
    pub(crate) price_cents: i64,
    pub(crate) description: String,
    /// UTC, as RFC 3339 writes it, in milliseconds.
    pub(crate) created_at: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        assert_eq!(ProductId::parse_key("1"), Some(ProductId(1)));
        assert_eq!(ProductId::parse_key("9223372036854775807"), Some(ProductId(i64::MAX)));
        for text in ["", "0", "-1", "-0", "007", "+5", "abc", "1 ", "99999999999999999999"] {
            assert_eq!(ProductId::parse_key(text), None, "{text:?}");
        }
    }
}
