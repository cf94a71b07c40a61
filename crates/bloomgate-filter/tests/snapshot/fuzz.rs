//! Mutation tests of reading: no panic, bounded memory, and no set other than the one in the bytes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bloomgate_filter::snapshot;
use bloomgate_filter::{
    Bitmap, BloomFilter, BloomParams, ClassicBloom, ClassicParams, Error, ExactSet,
    FalsePositiveRate, Family, HashAlgorithm, Membership as _,
};

use crate::fixtures::{hasher, secret, snapshots, write};
use crate::forge;

/// The memory that reading may take in addition to the length of the snapshot.
const OVERHEAD: u64 = 64 * 1024;

/// The maximum ratio of the memory of a set to its snapshot, reached by small keys in an exact set.
const MAX_EXPANSION: u64 = 16;

/// SplitMix64: deterministic test cases.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn choose<'a, T>(&mut self, some: &'a [T]) -> &'a T {
        &some[self.below(some.len())]
    }

    /// A range of at most `max` bytes in `bytes`.
    fn range(&mut self, bytes: &[u8], max: usize) -> std::ops::Range<usize> {
        let start = self.below(bytes.len() + 1);
        start..start + self.below(max.min(bytes.len() - start) + 1)
    }

    /// A boundary value, a small number, or a random number.
    fn number(&mut self) -> u64 {
        let edges = [0_u64, 1, 8, 64, 1 << 16, 1 << 31, 1 << 32, 1 << 48, 1 << 57, 1 << 63];
        match self.below(4) {
            0 => self.next(),
            1 => self.below(5000) as u64,
            2 => self.choose(&edges).wrapping_sub(1),
            _ => *self.choose(&edges),
        }
    }
}

/// Small valid snapshots, so that mutations often hit relevant bytes.
fn corpus() -> Vec<Vec<u8>> {
    let mut all: Vec<_> = snapshots().into_iter().map(|(_, bytes)| bytes).collect();
    all.push(write(&Bitmap::new()));
    all.push(write(&ExactSet::new()));
    let bitmap = Bitmap::new();
    (0..40).for_each(|n| _ = bitmap.insert_id(n * 30_000));
    bitmap.insert(b"not an integer");
    all.push(write(&bitmap));
    let set = ExactSet::new();
    (0..20).for_each(|n| _ = set.insert(&vec![b'k'; n]));
    all.push(write(&set));
    // The sets with the largest expansion, for the memory bound.
    let (bitmap, set) = (Bitmap::new(), ExactSet::new());
    (0..3000).for_each(|n| _ = bitmap.insert_id(n << 33));
    (0..3000_u16).for_each(|n| _ = set.insert(&n.to_le_bytes()));
    all.push(write(&bitmap));
    all.push(write(&set));
    all
}

fn mutate(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut Rng) {
    let at = rng.below(bytes.len());
    match rng.below(9) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << rng.below(8);
            }
        }
        // A field of the header, or the first number of the body.
        1..=3 => {
            let fields = [
                (forge::FAMILY, 1),
                (forge::HASH_ALGORITHM, 1),
                (forge::HEADER_LENGTH, 4),
                (forge::PLANNED_ITEMS, 8),
                (forge::FALSE_POSITIVE_RATE, 8),
                (forge::SIZE, 8),
                (forge::HASHES, 4),
                (forge::NON_INTEGER_KEYS, 1),
                (forge::ITEMS, 8),
                (forge::BODY_LENGTH, 8),
                (forge::POSITION_LENGTH, 4),
                (forge::body(bytes), 8),
            ];
            let &(at, length) = rng.choose(&fields);
            let number = rng.number().to_le_bytes();
            if let Some(field) = bytes.get_mut(at..at + length) {
                field.copy_from_slice(&number[..length]);
            }
        }
        4 => {
            let from = rng.choose(corpus);
            let from = from[rng.range(from, 100)].to_vec();
            let to = rng.range(bytes, 100);
            bytes.splice(to, from);
        }
        5 => {
            let range = rng.range(bytes, 300);
            bytes.drain(range);
        }
        6 => {
            let again = bytes[rng.range(bytes, 64)].to_vec();
            bytes.splice(at..at, again);
        }
        7 => {
            let new: Vec<u8> = (0..rng.below(40)).map(|_| rng.next() as u8).collect();
            bytes.splice(at..at, new);
        }
        _ => bytes.truncate(rng.below(bytes.len() + 1)),
    }
}

/// The bytes of one test case.
fn case(corpus: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    if rng.one_in(16) {
        let mut random: Vec<u8> = (0..rng.below(400)).map(|_| rng.next() as u8).collect();
        if rng.one_in(2) && random.len() > 10 {
            random[..10].copy_from_slice(&corpus[0][..10]);
        }
        return random;
    }
    let mut bytes = rng.choose(corpus).clone();
    for _ in 0..1 + rng.below(3) {
        mutate(&mut bytes, corpus, rng);
    }
    // Without this, most mutations would fail at a checksum or a length.
    if !rng.one_in(4) {
        if rng.one_in(2) {
            let length = bytes.len().saturating_sub(forge::body(&bytes) + 16) as u64;
            if let Some(field) = bytes.get_mut(forge::BODY_LENGTH..forge::BODY_LENGTH + 8) {
                field.copy_from_slice(&length.to_le_bytes());
            }
        }
        forge::seal(&mut bytes);
    }
    bytes
}

/// Reads the bytes and checks the guarantees of reading. Returns the family of the set, or the
/// error.
fn check(bytes: &[u8], length: u64) -> String {
    let secret = secret();
    let mut result = None;
    let counted = allocation_counter::measure(|| {
        result = Some(snapshot::read(bytes, length, Some(&secret)));
    });
    let (size, peak) = (bytes.len().max(length as usize) as u64, counted.bytes_max);
    let loaded = match result.unwrap() {
        Ok(loaded) => loaded,
        Err(error) => {
            assert!(peak <= size + OVERHEAD, "{peak} bytes for {size}: {error}");
            return match error {
                Error::SnapshotField { field, reason } => format!("{field} {reason}"),
                error => format!("{error:?}").split([' ', '{']).next().unwrap().to_owned(),
            };
        }
    };
    assert!(peak <= MAX_EXPANSION * size + OVERHEAD, "{peak} bytes for {size}");
    assert_eq!(snapshot::read_header(bytes), Ok(loaded.header.clone()));

    // A set has exactly one representation: a set that was read is written as the same bytes.
    let mut again = Vec::new();
    snapshot::write(&loaded.set, loaded.header.position(), &mut again).unwrap();
    let (header, set) = (loaded.header, loaded.set);
    let stats = set.stats();
    let exact = matches!(header.family(), Family::Bitmap | Family::Exact);
    if exact && header.items() < stats.items {
        assert_eq!(Some(stats.items), stats.distinct);
        again = forge::with(&again, forge::ITEMS, &header.items().to_le_bytes());
    }
    assert!(again == bytes, "{header:?} is written differently");

    for share in
        [stats.fill_ratio, stats.current_false_positive_rate, stats.expected_false_positive_rate]
    {
        assert!((0.0..=1.0).contains(&share), "{stats:?}");
    }
    set.insert(b"12345678");
    set.insert(b"123456789");
    assert!(set.contains(b"12345678") && set.contains(b"123456789"));
    assert_eq!(set.stats().items, stats.items + 2);
    header.family().name().to_owned()
}

/// Checks the cases of `seeds` until `stop` returns `true`, and counts their outcomes.
fn run(seeds: impl Iterator<Item = u64>, stop: impl Fn() -> bool) -> BTreeMap<String, u64> {
    let corpus = corpus();
    let mut outcomes = BTreeMap::new();
    for seed in seeds.take_while(|_| !stop()) {
        let mut rng = Rng(seed);
        let bytes = case(&corpus, &mut rng);
        let mut length = bytes.len() as u64;
        if rng.one_in(20) {
            length = (length + rng.below(64) as u64).saturating_sub(32);
        }
        let outcome = std::panic::catch_unwind(|| check(&bytes, length));
        let outcome = outcome.unwrap_or_else(|_| panic!("seed {seed} fails: {bytes:02x?}"));
        *outcomes.entry(outcome).or_insert(0) += 1;
    }
    outcomes
}

#[test]
fn case_10_mutated_snapshots_are_read_or_refused() {
    let outcomes = run(0..60_000, || false);
    // The checks behind those of the header were reached.
    let required = [
        "bitmap",
        "bloom",
        "classic",
        "exact",
        "body has a chunk that is out of order or of the wrong kind",
        "body has bits set beyond the last one",
        "body has keys that are out of order or repeated",
    ];
    assert!(required.iter().all(|&outcome| outcomes.contains_key(outcome)), "{outcomes:#?}");
}

#[test]
#[ignore = "five minutes"]
fn deep_case_10_mutated_snapshots_are_read_or_refused_for_five_minutes() {
    let end = Instant::now() + Duration::from_secs(300);
    let outcomes = run(1 << 32.., || Instant::now() > end);
    println!("{} cases: {outcomes:#?}", outcomes.values().sum::<u64>());
}

#[test]
fn case_10_reading_a_large_filter_allocates_its_size_once() {
    let rate = FalsePositiveRate::new(0.001).unwrap();
    let bloom =
        BloomFilter::new(BloomParams::new(1 << 20, rate).unwrap(), hasher(HashAlgorithm::Xxh3))
            .unwrap();
    let classic = ClassicParams::new(1 << 20, rate).unwrap();
    let classic = ClassicBloom::new(classic, hasher(HashAlgorithm::Xxh3)).unwrap();
    let secret = secret();
    for mut bytes in [write(&bloom), write(&classic)] {
        let size = bytes.len() as u64;
        let peak = |bytes: &[u8]| {
            let read = || drop(snapshot::read(bytes, size, Some(&secret)));
            allocation_counter::measure(read).bytes_max
        };
        assert!(peak(&bytes) <= size + OVERHEAD);
        // A wrong last bit, which is detected when everything is in memory.
        *bytes.last_mut().unwrap() ^= 0x80;
        assert!(peak(&bytes) <= size + OVERHEAD);
        // A wrong length, which is detected before memory is allocated.
        bytes.truncate(bytes.len() - 1);
        let read = || drop(snapshot::read(bytes.as_slice(), size - 1, Some(&secret)));
        assert!(allocation_counter::measure(read).bytes_max <= OVERHEAD);
    }
}
