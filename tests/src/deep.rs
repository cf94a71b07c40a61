//! The number of repetitions of a scenario, in an ordinary run and in a deep one.

/// `deep` if the environment variable `BLOOMGATE_DEEP` is set to anything, otherwise `ordinary`.
///
/// The suite runs at every change and must be short; `scripts/deep` sets the variable. Both run the
/// same scenario with the same expectations.
#[must_use]
pub fn repetitions(ordinary: u64, deep: u64) -> u64 {
    let is_deep = std::env::var_os("BLOOMGATE_DEEP").is_some_and(|value| !value.is_empty());
    if is_deep { deep } else { ordinary }
}
