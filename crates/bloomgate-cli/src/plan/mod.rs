//! `bloomgate plan`: how large each kind of set would be, before anything is built.
//!
//! In order: [`args`] (flags), [`families`] (the size of each kind of set), [`advice`] (what
//! they suggest), [`table`] (how a person reads them).

mod advice;
mod args;
mod families;
mod table;

use std::process::ExitCode;

use serde::Serialize;

pub(crate) use args::Args;
use families::Families;

use crate::output;

/// All that is printed; serialised, it is the object of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    items: u64,
    rate: f64,
    families: Families,
    advice: Vec<String>,
}

/// Runs the subcommand and prints its report on stdout, or why there is none on stderr.
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
