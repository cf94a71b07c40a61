//! Walking a table in pages by key, whichever database it is in.

use futures_util::future::BoxFuture;

use crate::error::{Error, SourceError};
use crate::key::Key;
use crate::ports::{Cursor, Scan, ScanCompleted, ScanFrom};
use crate::sql::Quoted;

/// The statements of a walk, and how errors name it.
#[derive(Clone, Debug)]
pub(super) struct Statements {
    pub(super) count: String,
    pub(super) first: String,
    pub(super) next: String,
    what: String,
}

impl Statements {
    /// `placeholder` is the database's first one (`$1`, `?1`); `page` the keys in one query.
    pub(super) fn new(
        table: &str,
        column: &str,
        placeholder: &str,
        page: u32,
    ) -> Result<Self, Error> {
        let what = format!("{table}.{column}");
        let (table, column) = (Quoted::table(table)?, Quoted::column(column)?);
        // In full: SQLite takes a lone quoted name that is no column for a text, and a scan of a
        // misspelt column would come to its end with that text as the only key.
        let column = format!("{table}.{column}");
        let page_of = |condition: String| {
            format!("SELECT {column} FROM {table} WHERE {condition} ORDER BY {column} LIMIT {page}")
        };
        Ok(Self {
            count: format!("SELECT count({column}) FROM {table}"),
            first: page_of(format!("{column} IS NOT NULL")),
            next: page_of(format!("{column} > {placeholder}")),
            what,
        })
    }

    pub(super) fn what(&self) -> &str {
        &self.what
    }

    pub(super) fn failed(&self, error: sqlx::Error) -> SourceError {
        SourceError::new(format!("reading {}", self.what)).with_source(error)
    }
}

/// Hands over page after page; `page_after` fetches the one after a key.
pub(super) async fn walk<'a, K: Key>(
    from: ScanFrom,
    into: &mut dyn Scan,
    page_after: impl Fn(Option<K>) -> BoxFuture<'a, Result<Vec<K>, SourceError>>,
) -> Result<ScanCompleted, SourceError> {
    let mut last: Option<K> = match &from {
        ScanFrom::Start => None,
        ScanFrom::After(cursor) => cursor.position().cloned(),
    };
    loop {
        let page = page_after(last).await?;
        // The database's own "no more rows" is the end; a short page is not.
        let Some(newest) = page.last().cloned() else {
            return Ok(ScanCompleted::explicit_end());
        };
        for key in &page {
            key.with_bytes(|bytes| into.key(bytes));
        }
        into.checkpoint(Cursor::new(newest.clone()));
        last = Some(newest);
        tokio::task::yield_now().await;
    }
}
