//! A product service that random ids cannot bring down: bloomgate's example.

mod app;
mod args;
mod catalogue;
mod database;
mod draft;
mod logging;
mod problem;
mod product;
mod routes;
mod secret_file;
mod seed;
mod settings;
mod shutdown;
mod startup;
mod unguarded;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    logging::start();
    let ended = match args::parse() {
        Ok(Some(args)) => startup::run(args).await,
        // The help or the version was asked for and given.
        Ok(None) => Ok(()),
        Err(refused) => Err(refused),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(fatal) => {
            eprintln!("product-detail: {fatal}");
            fatal.exit_code()
        }
    }
}
