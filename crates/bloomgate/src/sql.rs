//! Quoting of SQL names, the one place where SQL is put together from text.

use crate::error::ConfigError;

/// A table's or a column's name, checked and quoted for PostgreSQL and SQLite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quoted(String);

impl Quoted {
    /// Quotes a table's name; `schema.table` is two names.
    pub(crate) fn table(name: &str) -> Result<Self, ConfigError> {
        let parts: Result<Vec<String>, ConfigError> =
            name.split('.').map(|part| quote("table", part)).collect();
        parts.map(|parts| Self(parts.join(".")))
    }

    /// Quotes a column's name.
    pub(crate) fn column(name: &str) -> Result<Self, ConfigError> {
        quote("column", name).map(Self)
    }
}

impl std::fmt::Display for Quoted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

fn quote(field: &'static str, name: &str) -> Result<String, ConfigError> {
    if name.is_empty() || name.contains('\0') {
        let problem = format!("{name:?} can't be a name");
        return Err(ConfigError::setting(
            field,
            problem,
            "give a name that isn't empty and holds no NUL",
        ));
    }
    Ok(format!("\"{}\"", name.replace('"', "\"\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_whatever_they_hold() {
        assert_eq!(Quoted::table("products").unwrap().to_string(), r#""products""#);
        assert_eq!(Quoted::table("shop.products").unwrap().to_string(), r#""shop"."products""#);
        assert_eq!(Quoted::column(r#"i"d; --"#).unwrap().to_string(), r#""i""d; --""#);
        for name in ["", "a\0b"] {
            assert!(Quoted::column(name).is_err());
        }
        assert!(Quoted::table("a..b").is_err());
    }
}
