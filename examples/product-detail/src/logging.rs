//! The log, on standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// What is logged unless `RUST_LOG` says otherwise. What the guard's loader would say, the database
/// module has said already, with or without a guard.
const DEFAULT: &str = "warn,bloomgate=info,product_detail=info,bloomgate::loader=error";

/// Starts logging.
pub(crate) fn start() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}
