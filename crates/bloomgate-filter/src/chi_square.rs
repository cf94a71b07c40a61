//! Chi-square test of uniformity, for the unit tests.

/// The chi-square statistic of `counts` against equal shares.
pub(crate) fn chi_square(counts: &[u32]) -> f64 {
    let total: u32 = counts.iter().sum();
    let expected = f64::from(total) / counts.len() as f64;
    counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum()
}

/// The value that a chi-square of `cells - 1` degrees of freedom exceeds with a probability of
/// about 10^-6.
pub(crate) fn critical_value(cells: usize) -> f64 {
    let degrees = (cells - 1) as f64;
    degrees + 5.5 * (2.0 * degrees).sqrt() + 12.0
}
