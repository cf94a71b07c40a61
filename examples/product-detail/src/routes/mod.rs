//! The handlers.

pub(crate) mod products;
pub(crate) mod state;
