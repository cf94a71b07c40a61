//! The layer on real routes, against the same routes without it.

mod apps;
mod cors;
mod errors;
mod foreign;
mod keys;
mod log;
mod methods;
mod modes;
mod parameters;
mod parity;
mod readiness;
mod replies;
mod rows;
mod spellings;
mod wire;
