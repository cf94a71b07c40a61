//! One build of the filter.

use bloomgate_filter::{AnySet, Family, Key, Membership as _, Stats};

/// Keys that go to the filter in one call.
const BATCH: usize = 128;

/// One build of the filter.
#[derive(Debug)]
pub(crate) struct Generation {
    number: u64,
    filter: AnySet,
}

impl Generation {
    pub(crate) fn new(number: u64, filter: AnySet) -> Self {
        Self { number, filter }
    }

    /// Counts up from 1 in each process.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn family(&self) -> Family {
        self.filter.family()
    }

    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.filter.contains(key)
    }

    pub(crate) fn insert(&self, key: &[u8]) {
        // Whether a bit was new is advisory and says nothing that the gate needs.
        let _ = self.filter.insert(key);
    }

    /// [`insert`](Self::insert) for each of `keys`, in batches: a large filter fetches memory for
    /// later keys while it sets the bits of earlier ones.
    pub(crate) fn insert_many<K: Key>(&self, keys: &[K]) {
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
            self.filter.insert_many(&slices[..keys.len()]);
        }
    }

    /// The set, to be written out.
    pub(crate) fn set(&self) -> &AnySet {
        &self.filter
    }

    pub(crate) fn stats(&self) -> Stats {
        self.filter.stats()
    }
}

#[cfg(test)]
mod tests {
    use bloomgate_filter::{FalsePositiveRate, HashAlgorithm, Secret};

    use super::super::config::{Capacity, GenerationSpec};
    use super::*;

    #[test]
    fn every_key_of_a_batch_is_in_at_every_number_and_length_of_keys() {
        let secret = Secret::generate().unwrap();
        let rate = FalsePositiveRate::new(0.001).unwrap();
        let (capacity, hash) = (Capacity::Fixed(1_000), HashAlgorithm::SipHash13);
        for spec in [GenerationSpec::Exact, GenerationSpec::Bloom { capacity, rate, hash }] {
            for many in [0, 1, BATCH - 1, BATCH, BATCH + 1, 3 * BATCH + 5] {
                let generation = Generation::new(1, spec.new_filter(0, &secret).unwrap());
                let keys: Vec<String> = (0..many).map(|length| "a".repeat(length)).collect();
                generation.insert_many(&keys);
                assert!(keys.iter().all(|key| generation.contains(key.as_bytes())), "{many}");
                assert_eq!(generation.stats().items, many as u64);
                let exact = spec == GenerationSpec::Exact;
                assert!(!exact || !generation.contains(b"b"), "{many}");
            }
        }
    }
}
