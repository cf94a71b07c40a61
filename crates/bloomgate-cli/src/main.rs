//! The `bloomgate` command.

mod attack;
mod number;
mod output;
mod plan;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(
    name = "bloomgate",
    version,
    about = "Tools around the bloomgate guard",
    max_term_width = 100
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Plan(plan::Args),
    Attack(Box<attack::Args>),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Plan(args) => plan::run(&args),
        Command::Attack(args) => attack::run(&args),
    }
}
