//! Demonstration products, in portions, with a progress bar.

use indicatif::{ProgressBar, ProgressStyle};

/// Products in one statement: long enough to be quick, short enough for a bar that moves.
const PORTION: i64 = 20_000;

/// The first and the last number of each portion of `products`, from 1.
pub(crate) fn portions(products: u64) -> impl Iterator<Item = (i64, i64)> {
    let products = i64::try_from(products).unwrap_or(i64::MAX);
    let mut next = 1_i64;
    std::iter::from_fn(move || {
        let first = next;
        next = first.saturating_add(PORTION);
        (first <= products).then(|| (first, products.min(next - 1)))
    })
}

/// A bar on standard error, if that is a terminal. Gone when it is dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn of(products: u64) -> Self {
        let template = "adding products {wide_bar} {human_pos}/{human_len}";
        let style = ProgressStyle::with_template(template);
        let bar = ProgressBar::new(products);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self(bar)
    }

    pub(crate) fn reached(&self, products: i64) {
        self.0.set_position(products.unsigned_abs());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_are_gapless() {
        assert_eq!(portions(0).count(), 0);
        assert_eq!(portions(1).collect::<Vec<_>>(), [(1, 1)]);
        assert_eq!(portions(20_000).collect::<Vec<_>>(), [(1, 20_000)]);
        let all: Vec<_> = portions(50_001).collect();
        assert_eq!(all, [(1, 20_000), (20_001, 40_000), (40_001, 50_001)]);
    }
}
