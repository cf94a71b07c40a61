//! The gate as the user describes it.

use bloomgate_filter::{
    AnySet, Bitmap, BloomFilter, BloomParams, ExactSet, FalsePositiveRate, Family, HashAlgorithm,
    KeyedHasher, Secret,
};

use crate::error::ConfigError;

/// How many ids a Bloom gate is sized for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capacity {
    /// Twice the rows that the source counts, and at least [`AT_LEAST`].
    Counted,
    /// This many.
    Fixed(u64),
}

/// The least that a counted gate is sized for.
pub(crate) const AT_LEAST: u64 = 10_000;

impl Capacity {
    /// The ids to size a gate for, where the source has counted `rows`.
    pub(super) fn for_rows(self, rows: u64) -> u64 {
        match self {
            Self::Counted => rows.saturating_mul(2).max(AT_LEAST),
            Self::Fixed(items) => items,
        }
    }
}

/// The gate to build: which kind of set it is, or none.
///
/// | | ids | false positives | memory for 10 million ids |
/// |---|---|---|---|
/// | [`bloom`](Gate::bloom) | of any kind | 0.1 % by default | 20 MB at that rate |
/// | [`bitmap`](Gate::bitmap) | integers | none | 1.3 MB if they are dense |
/// | [`exact`](Gate::exact) | of any kind, a few thousand | none | not made for it |
///
/// ```
/// use bloomgate::Gate;
///
/// let gate = Gate::bloom().items(10_000_000).false_positive_rate(0.001);
/// ```
#[derive(Clone, Debug)]
pub struct Gate {
    family: Family,
    items: Option<u64>,
    rate: Option<f64>,
    hash: Option<HashAlgorithm>,
    forced_open: bool,
}

/// The same, checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GateSettings {
    pub(crate) generation: GenerationSpec,
    pub(crate) forced_open: bool,
}

/// What each generation is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GenerationSpec {
    Bloom { capacity: Capacity, rate: FalsePositiveRate, hash: HashAlgorithm },
    Bitmap,
    Exact,
}

impl GenerationSpec {
    /// Whether [`new_filter`](Self::new_filter) depends on the number of rows.
    pub(crate) fn needs_count(&self) -> bool {
        matches!(self, Self::Bloom { capacity: Capacity::Counted, .. })
    }

    /// An empty filter for a source of `rows` keys, which count only if
    /// [`needs_count`](Self::needs_count). A Bloom filter has a hash key of its own: a rebuild is a
    /// rotation, and a harvested false positive dies with it.
    pub(crate) fn new_filter(
        &self,
        rows: u64,
        secret: &Secret,
    ) -> Result<AnySet, bloomgate_filter::Error> {
        Ok(match *self {
            Self::Bloom { capacity, rate, hash } => {
                let params = BloomParams::new(capacity.for_rows(rows), rate)?;
                let nonce: [u8; 16] = rand::random();
                BloomFilter::new(params, KeyedHasher::new(hash, secret, &nonce))?.into()
            }
            Self::Bitmap => Bitmap::new().into(),
            Self::Exact => ExactSet::new().into(),
        })
    }
}

impl Gate {
    /// A cache-line-blocked Bloom filter with a false-positive rate of 0.001, sized for twice the
    /// rows that the source counts (at least 10,000), hashed with AES-128-CMAC.
    #[must_use]
    pub fn bloom() -> Self {
        Self { family: Family::Bloom, items: None, rate: None, hash: None, forced_open: false }
    }

    /// An exact bitmap, for keys that are integers of up to 64 bits.
    ///
    /// No absent id passes, and dense ids, such as those of a sequence, take little more than a bit
    /// each: a tenth of a Bloom filter. Ids that lie far apart (random 64-bit numbers) take more
    /// than a Bloom filter would. Grows as needed.
    #[must_use]
    pub fn bitmap() -> Self {
        Self { family: Family::Bitmap, ..Self::bloom() }
    }

    /// The set of the keys themselves, for a few thousand of any kind. No absent id passes. Grows
    /// as needed.
    #[must_use]
    pub fn exact() -> Self {
        Self { family: Family::Exact, ..Self::bloom() }
    }

    /// No gate: every request passes, and nothing is warmed. For tests and comparisons.
    #[must_use]
    pub fn open() -> Self {
        Self { forced_open: true, ..Self::bloom() }
    }

    /// Sizes a Bloom filter for this many ids. With more, no id is refused wrongly, but the
    /// false-positive rate rises above the one asked for.
    #[must_use]
    pub fn items(mut self, items: u64) -> Self {
        self.items = Some(items);
        self
    }

    /// The share of absent ids that a Bloom filter may let pass when it holds as many ids as it is
    /// sized for; between 0 and 1, both excluded.
    #[must_use]
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// The keyed hash of a Bloom filter. [`HashAlgorithm::SipHash13`] is the better choice on processors
    /// without AES instructions. [`HashAlgorithm::Xxh3`] is the fastest and makes no claim against
    /// adversaries: for key spaces that strangers can't choose from.
    #[must_use]
    pub fn hash(mut self, hash: HashAlgorithm) -> Self {
        self.hash = Some(hash);
        self
    }

    /// The settings, if a gate for keys of `kind` can have them.
    pub(crate) fn check(&self, kind: &str) -> Result<GateSettings, ConfigError> {
        let generation = match self.family {
            Family::Bitmap if kind != "int" => {
                let problem = format!("a bitmap can't hold keys of the kind {kind}");
                let fix = "use Gate::bloom() or Gate::exact(), or integer keys of up to 64 bits";
                return Err(ConfigError::setting("gate", problem, fix));
            }
            Family::Bitmap => self.exact_family(GenerationSpec::Bitmap)?,
            Family::Exact => self.exact_family(GenerationSpec::Exact)?,
            _ => self.bloom_filter()?,
        };
        Ok(GateSettings { generation, forced_open: self.forced_open })
    }

    fn bloom_filter(&self) -> Result<GenerationSpec, ConfigError> {
        let refused = ConfigError::filter;
        let rate = FalsePositiveRate::new(self.rate.unwrap_or(0.001)).map_err(refused)?;
        let capacity = match self.items {
            None => Capacity::Counted,
            Some(items) => {
                // A plan that can't be made is refused now, not when the table has been read.
                BloomParams::new(items, rate).map_err(refused)?;
                Capacity::Fixed(items)
            }
        };
        let hash = self.hash.unwrap_or(HashAlgorithm::Aes128);
        Ok(GenerationSpec::Bloom { capacity, rate, hash })
    }

    /// Settings that would do nothing are refused: their user believes that they do something.
    fn exact_family(&self, spec: GenerationSpec) -> Result<GenerationSpec, ConfigError> {
        let idle = [
            ("gate.items", self.items.is_some()),
            ("gate.false_positive_rate", self.rate.is_some()),
            ("gate.hash", self.hash.is_some()),
        ];
        match idle.into_iter().find(|(_, given)| *given) {
            None => Ok(spec),
            Some((field, _)) => {
                let problem = format!("means nothing to a gate of the kind {}", self.family.name());
                Err(ConfigError::setting(field, problem, "leave it out, or use Gate::bloom()"))
            }
        }
    }
}
