//! The false-positive rate of the blocked layout, as derived in the parent module.

/// The probability that one stored key leaves a given bit of the probed word at 0.
pub(super) const A: f64 = (1.0 + 62.0 / 64.0) / 2.0;

/// The probability that one stored key leaves two given bits of the probed word at 0.
const B: f64 = (1.0 + 60.0 / 64.0 + 1.0 / 2048.0) / 2.0;

/// The same for two bits at distance 32.
const C: f64 = (1.0 + 60.0 / 64.0 + 2.0 / 2048.0) / 2.0;

/// Above this mean number of keys per block the rate is 1 to the precision of an `f64`.
///
/// 1 − g⁴ is about 8 Aʲ, and Aʲ is below 1e-20 from j = 3000 on, 17 deviations below this mean.
const SATURATED_KEYS_PER_BLOCK: f64 = 4096.0;

/// The mean of g(j)⁴ over binomial j: `items` trials of probability 1 / `blocks`.
pub(super) fn model_rate(items: u64, blocks: u64) -> f64 {
    if items == 0 {
        return 0.0;
    }
    let (n, b) = (items as f64, blocks as f64);
    if n / b > SATURATED_KEYS_PER_BLOCK {
        return 1.0;
    }
    if blocks == 1 {
        return UnsetProbabilities::after(items).rate();
    }
    // Weights relative to the most likely j; dividing by their sum makes them probabilities.
    // Starting at the mode avoids underflow.
    let mode = items / blocks;
    let most_likely = UnsetProbabilities::after(mode);
    let mut passing = most_likely.rate();
    let mut total = 1.0;

    let (mut weight, mut unset) = (1.0, most_likely);
    for j in (0..mode).rev() {
        let j = j as f64;
        weight *= (j + 1.0) * (b - 1.0) / (n - j);
        if weight < 1e-20 {
            break;
        }
        unset.remove_key();
        passing += weight * unset.rate();
        total += weight;
    }

    let (mut weight, mut unset) = (1.0, most_likely);
    for j in mode..items {
        let j = j as f64;
        weight *= (n - j) / ((j + 1.0) * (b - 1.0));
        // Blocks with many keys are rare but have much higher rates: stop only where even a rate of
        // 1 would not change the sum.
        if weight < 1e-17 * passing {
            break;
        }
        unset.add_key();
        passing += weight * unset.rate();
        total += weight;
    }
    (passing / total).clamp(0.0, 1.0)
}

/// The probabilities Aʲ, Bʲ and Cʲ that bits stay 0 in a block of *j* keys.
#[derive(Clone, Copy)]
struct UnsetProbabilities {
    a: f64,
    b: f64,
    c: f64,
}

impl UnsetProbabilities {
    fn after(j: u64) -> Self {
        Self { a: power(A, j), b: power(B, j), c: power(C, j) }
    }

    fn add_key(&mut self) {
        self.a *= A;
        self.b *= B;
        self.c *= C;
    }

    fn remove_key(&mut self) {
        self.a /= A;
        self.b /= B;
        self.c /= C;
    }

    /// g(j)⁴.
    fn rate(self) -> f64 {
        let pair = 1.0 - 2.0 * self.a + (31.0 * self.b + self.c) / 32.0;
        // Rounding can give about -1e-16 where the true value is 0.
        let pair = pair.max(0.0);
        pair * pair * pair * pair
    }
}

/// `base` to the power of `exponent`, by squaring; unlike `powi` deterministic on every target.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}
