//! `bloomgate attack`: HTTP requests for ids that do not exist, and the count of those that reach
//! the database.
//!
//! In the order of a run:
//!
//! - [`args`], [`help`] and [`plan`]: the flags, each alone, then together;
//! - [`http`]: where requests go, and what is in them; [`ids`]: the ids in them;
//! - [`mod@run`], [`traffic`], [`pacing`] and [`worker`]: sending them;
//! - [`statistics`]: the answers; [`guard`]: what the guard counted;
//! - [`progress`], [`findings`], [`report`], [`table`] and [`units`]: the output.

mod args;
mod error;
mod findings;
mod guard;
mod help;
mod http;
mod ids;
mod pacing;
mod plan;
mod progress;
mod report;
mod run;
mod statistics;
mod table;
mod traffic;
mod units;
mod worker;

use std::process::ExitCode;

pub(crate) use args::Args;
use args::IdKind;
use error::Error;
use plan::AttackPlan;
use report::{Report, RunSettings};

use crate::output;

/// Runs the subcommand and prints its report on stdout, or one line on stderr.
pub(crate) fn run(args: &Args) -> ExitCode {
    match attack(args) {
        Ok(report) => match print(&report, args.json) {
            Ok(()) => ExitCode::from(report.exit_code(args.fail_on_refusal)),
            Err(error) => {
                eprintln!("error: can't print the report: {error}");
                ExitCode::FAILURE
            }
        },
        Err(error) => {
            eprintln!("error: {}", error::one_line(&error));
            ExitCode::from(2)
        }
    }
}

fn attack(args: &Args) -> Result<Report, Error> {
    let plan = AttackPlan::new(args, rand::random())?;
    let settings = RunSettings {
        url: args.url.clone(),
        guard_url: args.guard_url.clone(),
        ids: args.ids.to_string(),
        profile: (args.ids == IdKind::Int).then(|| args.profile.name()),
        seed: plan.seed,
        connections: plan.connections,
        rate: args.rate,
    };
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(plan.threads)
        .enable_all()
        .build()
        .map_err(Error::Runtime)?
        .block_on(run::run(plan, settings))
}

fn print(report: &Report, json: bool) -> std::io::Result<()> {
    output::print(report, table::Table(report), json)?;
    for warning in report.warnings.iter().filter(|_| json) {
        eprintln!("warning: {warning}");
    }
    Ok(())
}
