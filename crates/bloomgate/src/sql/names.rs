//! Names in SQL: checked, quoted, one or several columns.

use crate::error::ConfigError;
use crate::sql::SqlDatabase;

/// The columns of a key, in the order of the key's parts: one name, or an array, vector or slice of
/// names.
pub trait ColumnNames {
    /// The names, unquoted.
    fn into_names(self) -> Vec<String>;
}

impl ColumnNames for &str {
    fn into_names(self) -> Vec<String> {
        vec![self.to_owned()]
    }
}

impl ColumnNames for String {
    fn into_names(self) -> Vec<String> {
        vec![self]
    }
}

impl ColumnNames for &String {
    fn into_names(self) -> Vec<String> {
        vec![self.clone()]
    }
}

impl<S: Into<String>, const N: usize> ColumnNames for [S; N] {
    fn into_names(self) -> Vec<String> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<S: Into<String>> ColumnNames for Vec<S> {
    fn into_names(self) -> Vec<String> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<S: AsRef<str>> ColumnNames for &[S] {
    fn into_names(self) -> Vec<String> {
        self.iter().map(|name| name.as_ref().to_owned()).collect()
    }
}

/// Quotes a table's name; `schema.table` is two names.
pub(super) fn quoted_table<DB: SqlDatabase>(name: &str) -> Result<String, ConfigError> {
    let parts: Result<Vec<String>, ConfigError> =
        name.split('.').map(|part| quoted::<DB>("table", part)).collect();
    parts.map(|parts| parts.join("."))
}

/// Quotes a column's name.
pub(super) fn quoted_column<DB: SqlDatabase>(name: &str) -> Result<String, ConfigError> {
    quoted::<DB>("columns", name)
}

fn quoted<DB: SqlDatabase>(field: &'static str, name: &str) -> Result<String, ConfigError> {
    if name.is_empty() || name.contains('\0') {
        let problem = format!("{name:?} can't be a name");
        return Err(ConfigError::setting(
            field,
            problem,
            "give a name that isn't empty and holds no NUL",
        ));
    }
    Ok(DB::quote(name))
}

/// A name in the quotes of the SQL standard.
pub(super) fn double_quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
