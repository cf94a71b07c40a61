//! A model of bloomgate's protocol (`docs/PROTOCOL.md`), searched state by state.

#[cfg(test)]
mod checks;
pub mod fleet;
pub mod fleet_caches;
pub mod gate;
pub mod slot;
pub mod two_primaries;
