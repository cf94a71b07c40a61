//! Names in statements.

use crate::error::ConfigError;
use crate::sql::names::{quoted_column, quoted_table};

#[cfg(feature = "postgres")]
type Database = sqlx::Postgres;
#[cfg(not(feature = "postgres"))]
type Database = sqlx::Sqlite;

#[test]
fn names_are_quoted_whatever_they_hold() {
    let table = |name| quoted_table::<Database>(name).unwrap();
    assert_eq!(table("products"), r#""products""#);
    assert_eq!(table("shop.products"), r#""shop"."products""#);
    let column = quoted_column::<Database>(r#"i"d; --"#).unwrap();
    assert_eq!(column, r#""i""d; --""#);
}

#[test]
fn names_that_cannot_be_are_refused_under_their_field() {
    for name in ["", "a\0b"] {
        let refused = quoted_column::<Database>(name);
        assert!(
            matches!(refused, Err(ConfigError::Setting { field: "columns", .. })),
            "{refused:?}"
        );
    }
    let refused = quoted_table::<Database>("a..b");
    assert!(matches!(refused, Err(ConfigError::Setting { field: "table", .. })), "{refused:?}");
}
