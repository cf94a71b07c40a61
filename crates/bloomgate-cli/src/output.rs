//! A report on stdout: a table for a person, or one JSON object.

use std::fmt::Display;
use std::io::{self, Write};

use serde::Serialize;

/// Prints `report` as JSON if `json`, else as `table`.
pub(crate) fn print(report: &impl Serialize, table: impl Display, json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer(&mut out, report)?;
        writeln!(out)?;
    } else {
        write!(out, "{table}")?;
    }
    out.flush()
}
