//! The key columns of a table, with the statements that read them.

use std::marker::PhantomData;

use super::names::{quoted_column, quoted_table};
use super::{ColumnNames, SqlDatabase, SqlKey};
use crate::error::ConfigError;

/// A table, the columns of its key, and optionally a condition on its rows.
pub(crate) struct KeyTable<DB> {
    /// Quoted.
    table: String,
    /// Quoted, each with its table. A lone quoted name that is no column is a text to SQLite, so
    /// that a scan of a misspelt column would come to its end with that text as its only key.
    columns: Vec<String>,
    condition: Option<String>,
    /// As given, for messages: `products.id`, `orders.(shop, number)`.
    name: String,
    database: PhantomData<fn() -> DB>,
}

impl<DB> Clone for KeyTable<DB> {
    fn clone(&self) -> Self {
        Self {
            table: self.table.clone(),
            columns: self.columns.clone(),
            condition: self.condition.clone(),
            name: self.name.clone(),
            database: PhantomData,
        }
    }
}

impl<DB: SqlDatabase> KeyTable<DB> {
    pub(crate) fn new(table: &str, columns: impl ColumnNames) -> Result<Self, ConfigError> {
        let names = columns.into_names();
        let name = match names.as_slice() {
            [] => {
                let fix = "name the columns of the key";
                return Err(ConfigError::setting("columns", "there are none", fix));
            }
            [column] => format!("{table}.{column}"),
            several => format!("{table}.({})", several.join(", ")),
        };
        let table = quoted_table::<DB>(table)?;
        let columns: Result<Vec<String>, ConfigError> = names
            .iter()
            .map(|column| Ok(format!("{table}.{}", quoted_column::<DB>(column)?)))
            .collect();
        Ok(Self { columns: columns?, table, condition: None, name, database: PhantomData })
    }

    /// Narrows the table to rows that meet a condition (SQL).
    pub(crate) fn filter(&mut self, condition: String) {
        self.condition = Some(condition);
    }

    /// The table and its key's columns, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn condition(&self) -> Option<&str> {
        self.condition.as_deref()
    }

    /// # Errors
    /// Says how many columns there are and how many the key has, if the numbers differ.
    pub(crate) fn check<K: SqlKey<DB>>(&self) -> Result<(), String> {
        if self.columns.len() == K::COLUMNS {
            return Ok(());
        }
        let (named, held) = (self.columns.len(), K::COLUMNS);
        Err(format!("{} names {named} columns, a key of the guard has {held}", self.name))
    }

    pub(crate) fn count_sql(&self) -> String {
        format!("SELECT count(*) FROM {} WHERE {}", self.table, self.all_of(self.not_null()))
    }

    /// The first page of the keys in their order.
    pub(crate) fn first_page_sql(&self) -> String {
        self.page_sql(self.not_null())
    }

    /// The page after the key that the parameters hold.
    pub(crate) fn next_page_sql(&self) -> String {
        let mut conditions = self.not_null();
        conditions.push(format!("{} > {}", row_of(&self.columns), row_of(&self.parameters(0))));
        self.page_sql(conditions)
    }

    fn page_sql(&self, conditions: Vec<String>) -> String {
        let (columns, conditions) = (self.columns.join(", "), self.all_of(conditions));
        let (table, page) = (&self.table, DB::PAGE);
        format!("SELECT {columns} FROM {table} WHERE {conditions} ORDER BY {columns} LIMIT {page}")
    }

    /// The row whose key the parameters hold.
    pub(crate) fn row_sql(&self) -> String {
        let equal = self.columns.iter().zip(self.parameters(0));
        let equal = equal.map(|(column, parameter)| format!("{column} = {parameter}")).collect();
        format!("SELECT * FROM {} WHERE {}", self.table, self.all_of(equal))
    }

    /// The rows whose keys the parameters hold, in any order. Each row ends with the position of
    /// its key, counted from 0.
    ///
    /// The database itself says which key finds which row: it may hold several spellings equal.
    pub(crate) fn rows_sql(&self, keys: usize) -> String {
        let width = self.columns.len();
        let key_columns: Vec<String> =
            (0..width).map(|number| format!("bloomgate_key_{number}")).collect();
        let values: Vec<String> = (0..keys)
            .map(|position| {
                format!("({position}, {})", self.parameters(position * width).join(", "))
            })
            .collect();
        let equal = self.columns.iter().zip(&key_columns);
        let equal = equal.map(|(column, key)| format!("{column} = {key}")).collect();
        format!(
            "WITH bloomgate_keys (bloomgate_position, {}) AS (VALUES {}) \
             SELECT {table}.*, CAST(bloomgate_position AS BIGINT) FROM bloomgate_keys, {table} \
             WHERE {}",
            key_columns.join(", "),
            values.join(", "),
            self.all_of(equal),
            table = self.table,
        )
    }

    /// Rows without a whole key are passed over. A comparison alone doesn't: `(2, NULL)` is greater
    /// than `(1, 5)`.
    fn not_null(&self) -> Vec<String> {
        self.columns.iter().map(|column| format!("{column} IS NOT NULL")).collect()
    }

    fn all_of(&self, mut conditions: Vec<String>) -> String {
        if let Some(condition) = &self.condition {
            // A comment at its end must not reach further.
            conditions.push(format!("({condition}\n)"));
        }
        conditions.join(" AND ")
    }

    /// The placeholders of one key, after `before` others.
    fn parameters(&self, before: usize) -> Vec<String> {
        (1..=self.columns.len()).map(|number| DB::placeholder(before + number)).collect()
    }
}

/// A row value, or the value itself if there is one.
fn row_of(values: &[String]) -> String {
    match values {
        [value] => value.clone(),
        several => format!("({})", several.join(", ")),
    }
}
