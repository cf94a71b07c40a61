//! A model of bloomgate's protocol (`docs/PROTOCOL.md`), searched state by state.
#![cfg_attr(
    test,
    expect(clippy::panic, reason = "a property that should break and holds fails the test")
)]

#[cfg(test)]
mod checks;
pub mod gate;
