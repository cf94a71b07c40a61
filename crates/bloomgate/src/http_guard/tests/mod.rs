//! The layer on real routes, against the same routes without it.

mod apps;
mod cors;
mod errors;
mod keys;
mod methods;
mod modes;
mod parity;
mod readiness;
mod wire;
