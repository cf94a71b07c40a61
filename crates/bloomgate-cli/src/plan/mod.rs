//! `bloomgate plan`: the size of each kind of set, before anything is built.
//!
//! In order: [`args`] (flags), [`families`] (size and rates of each kind of set), [`advice`]
//! (sentences for the user), [`table`] (the report as text).

mod advice;
mod args;
mod families;
mod table;

use std::process::ExitCode;

use serde::Serialize;

pub(crate) use args::Args;
use families::Families;

use crate::output;

/// The report; serialised, it is the object that `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    items: u64,
    rate: f64,
    families: Families,
    advice: Vec<String>,
}

/// Runs the subcommand and prints its report on stdout, or an error on stderr.
pub(crate) fn run(args: &Args) -> ExitCode {
    let families = Families::new(args.items, args.rate);
    if let Some(refusals) = families.all_refused() {
        eprintln!("error: --items: no kind of set can be planned");
        for (name, error) in refusals {
            eprintln!("  {name}: {error}");
        }
        return ExitCode::from(2);
    }
    let advice = advice::advice(args.items, args.rate, &families);
    let report = Report { items: args.items, rate: args.rate.get(), families, advice };
    match output::print(&report, table::Table(&report), args.json) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: can't print the report: {error}");
            ExitCode::FAILURE
        }
    }
}
