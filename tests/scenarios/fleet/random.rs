//! Random numbers from a seed, the same at each run.

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).unwrap();
        usize::try_from(self.next() % bound).unwrap()
    }
}

/// The seed of this run: `BLOOMGATE_SEED`, or the time. It is printed.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("BLOOMGATE_SEED").ok().filter(|text| !text.is_empty());
    let seed = given.map_or_else(
        || {
            let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            u64::try_from(time.as_micros()).unwrap()
        },
        |text| text.parse().expect("BLOOMGATE_SEED is a number"),
    );
    println!("BLOOMGATE_SEED={seed}");
    seed
}
