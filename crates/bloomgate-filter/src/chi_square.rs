//! What chance explains, for tests.

/// Chi-square of `counts` against equal shares.
pub(crate) fn chi_square(counts: &[u32]) -> f64 {
    let total: u32 = counts.iter().sum();
    let expected = f64::from(total) / counts.len() as f64;
    counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum()
}

/// The bound that a chi-square of `cells - 1` degrees of freedom exceeds about once in 10^6.
pub(crate) fn critical_value(cells: usize) -> f64 {
    let freedom = (cells - 1) as f64;
    freedom + 5.5 * (2.0 * freedom).sqrt() + 12.0
}
