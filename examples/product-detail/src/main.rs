//! A product service that random ids cannot bring down: bloomgate's example.

mod app;
mod args;
mod baseline;
mod catalogue;
mod database;
mod logging;
#[path = "../../../crates/bloomgate-cli/src/number.rs"]
mod number;
mod problem;
mod product;
mod product_input;
mod routes;
mod secret_file;
mod seed;
mod settings;
mod shutdown;
mod startup;

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
        Err(error) => {
            eprintln!("product-detail: {error}");
            error.exit_code()
        }
    }
}
