//! One build of the filter.

use std::sync::Arc;

use bloomgate_filter::{
    Bitmap, BloomFilter, BloomParams, ExactSet, Family, HashAlgorithm, Key, KeyedHasher,
    Membership, Secret, Stats,
};

/// Keys that go to the filter in one call.
const BATCH: usize = 128;

/// What a generation is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GenerationSpec {
    Bloom(BloomParams, HashAlgorithm),
    Bitmap,
    Exact,
}

/// One build of the filter. A Bloom filter has a hash key of its own: a rebuild is a rotation, and
/// a harvested false positive dies with it.
#[derive(Debug)]
pub(crate) struct Generation {
    number: u64,
    filter: Filter,
}

/// Concrete types, so that a check, which knows the length of its key, is compiled as one piece: a
/// trait object takes half as long again.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one in a generation; a box is a detour")]
enum Filter {
    Bloom(BloomFilter),
    Bitmap(Bitmap),
    Exact(ExactSet),
}

impl Filter {
    /// For everything that isn't a check.
    fn as_membership(&self) -> &dyn Membership {
        match self {
            Self::Bloom(filter) => filter,
            Self::Bitmap(filter) => filter,
            Self::Exact(filter) => filter,
        }
    }
}

impl Generation {
    pub(crate) fn new(
        number: u64,
        spec: GenerationSpec,
        secret: &Secret,
    ) -> Result<Self, Arc<bloomgate_filter::Error>> {
        let filter = match spec {
            GenerationSpec::Bloom(plan, hash) => {
                let nonce: [u8; 16] = rand::random();
                let hasher = KeyedHasher::new(hash, secret, &nonce);
                let filter = BloomFilter::new(plan, hasher);
                Filter::Bloom(filter?)
            }
            GenerationSpec::Bitmap => Filter::Bitmap(Bitmap::new()),
            GenerationSpec::Exact => Filter::Exact(ExactSet::new()),
        };
        Ok(Self { number, filter })
    }

    /// Counts up from 1 in each process.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn family(&self) -> Family {
        self.filter.as_membership().family()
    }

    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        match &self.filter {
            Filter::Bloom(filter) => filter.contains(key),
            Filter::Bitmap(filter) => filter.contains(key),
            Filter::Exact(filter) => filter.contains(key),
        }
    }

    pub(crate) fn insert(&self, key: &[u8]) {
        // Whether a bit was new is advisory and says nothing that the gate needs.
        let _ = self.filter.as_membership().insert(key);
    }

    /// [`insert`](Self::insert) for each of `keys`, in batches: a large filter fetches memory for
    /// later keys while it sets the bits of earlier ones.
    pub(crate) fn insert_many<K: Key>(&self, keys: &[K]) {
        let filter = self.filter.as_membership();
        let (mut bytes, mut lengths) = (Vec::new(), [0; BATCH]);
        for keys in keys.chunks(BATCH) {
            bytes.clear();
            for (key, length) in keys.iter().zip(&mut lengths) {
                let before = bytes.len();
                key.with_bytes(|canonical| bytes.extend_from_slice(canonical));
                *length = bytes.len() - before;
            }
            let mut slices = [&[][..]; BATCH];
            let mut rest = bytes.as_slice();
            for (slice, length) in slices.iter_mut().zip(&lengths[..keys.len()]) {
                (*slice, rest) = rest.split_at(*length);
            }
            filter.insert_many(&slices[..keys.len()]);
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        self.filter.as_membership().stats()
    }
}

#[cfg(test)]
mod tests {
    use bloomgate_filter::FalsePositiveRate;

    use super::*;

    #[test]
    fn every_key_of_a_batch_is_in_at_every_number_and_length_of_keys() {
        let secret = Secret::generate().unwrap();
        let rate = FalsePositiveRate::new(0.001).unwrap();
        let params = BloomParams::new(1_000, rate).unwrap();
        let bloom = GenerationSpec::Bloom(params, HashAlgorithm::SipHash13);
        for spec in [GenerationSpec::Exact, bloom] {
            for many in [0, 1, BATCH - 1, BATCH, BATCH + 1, 3 * BATCH + 5] {
                let generation = Generation::new(1, spec, &secret).unwrap();
                let keys: Vec<String> = (0..many).map(|length| "a".repeat(length)).collect();
                generation.insert_many(&keys);
                assert!(keys.iter().all(|key| generation.contains(key.as_bytes())), "{many}");
                assert_eq!(generation.stats().items, many as u64);
                let exact = matches!(spec, GenerationSpec::Exact);
                assert!(!exact || !generation.contains(b"b"), "{many}");
            }
        }
    }
}
