//! `bloomgate attack`: real HTTP traffic for ids that do not exist, and what it cost the database.
//!
//! In the order in which a run goes through them: [`args`] and [`plan`] (flags, each alone, then
//! together), [`target`] (where traffic may go), [`mod@run`] (the run as a whole), [`traffic`] and
//! [`ids`] (what is settings), [`pacing`] (when), [`worker`] and [`http_connection`] (over which connection),
//! [`statistics`] (what was answered), [`guard_status`] (what the guard counted), [`report`] and
//! [`table`] (what came of it).

mod args;
mod error;
mod guard_status;
mod header;
mod help;
mod http_connection;
mod id;
mod id_file;
mod id_selection;
mod ids;
mod pacing;
mod permutation;
mod plan;
mod report;
mod resolve;
mod run;
mod statistics;
mod table;
mod target;
mod template;
mod traffic;
mod worker;

use std::process::ExitCode;

pub(crate) use args::Args;
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
        profile: args.profile.name(),
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
