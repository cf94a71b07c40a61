//! The body of POST and PUT: a product without what the database adds, checked.

use axum::Json;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use serde::Deserialize;

use crate::problem::Problem;

const MAX_NAME: usize = 200;
const MAX_DESCRIPTION: usize = 10_000;

/// A product without what the database adds to it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct ProductInput {
    pub(crate) name: String,
    pub(crate) price_cents: i64,
    pub(crate) description: String,
}

impl ProductInput {
    /// Says which field is wrong, if one is.
    fn check(&self) -> Result<(), String> {
        let text = |field: &str, text: &str, least: usize, most: usize| {
            let length = text.chars().count();
            if length < least || length > most {
                return Err(format!("{field}: {length} characters; {least} to {most} are allowed"));
            }
            // PostgreSQL can't store it.
            if text.contains('\0') {
                return Err(format!("{field}: holds the character U+0000"));
            }
            Ok(())
        };
        text("name", &self.name, 1, MAX_NAME)?;
        text("description", &self.description, 0, MAX_DESCRIPTION)?;
        if self.price_cents < 0 {
            return Err(format!("price_cents: {} is below 0", self.price_cents));
        }
        Ok(())
    }
}

impl<S: Send + Sync> FromRequest<S> for ProductInput {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let read = Json::<Self>::from_request(request, state).await;
        let Json(input) =
            read.map_err(|refused| Problem::new(refused.status(), refused.body_text()))?;
        input.check().map_err(|problem| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, problem))?;
        Ok(input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(name: &str, price_cents: i64, description: &str) -> ProductInput {
        ProductInput { name: name.to_owned(), price_cents, description: description.to_owned() }
    }

    #[test]
    fn limits_count_characters() {
        let umlauts = "ü".repeat(200);
        assert_eq!(input(&umlauts, i64::MAX, &"x".repeat(10_000)).check(), Ok(()));
        assert_eq!(input("x", 0, "").check(), Ok(()));
    }

    #[test]
    fn the_wrong_field_is_named() {
        for (input, field) in [
            (input("", 0, ""), "name"),
            (input(&"x".repeat(201), 0, ""), "name"),
            (input("a\0", 0, ""), "name"),
            (input("x", -1, ""), "price_cents"),
            (input("x", 0, &"x".repeat(10_001)), "description"),
        ] {
            let problem = input.check().unwrap_err();
            assert!(problem.starts_with(&format!("{field}: ")), "{problem}");
        }
    }
}
