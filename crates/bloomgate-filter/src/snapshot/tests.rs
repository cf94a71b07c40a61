//! Round-trip tests of snapshots of every size.

use super::*;
use crate::hash::{HashAlgorithm, KeyedHasher};
use crate::sizing::{BloomParams, ClassicParams, FalsePositiveRate};
use crate::{Bitmap, BloomFilter, ClassicBloom, ExactSet};

fn secret() -> Secret {
    Secret::new(&[7; 32]).unwrap()
}

fn hasher(hash: HashAlgorithm) -> KeyedHasher {
    KeyedHasher::new(hash, &secret(), b"generation no. 1")
}

fn bloom(blocks: u64, hash: HashAlgorithm) -> BloomFilter {
    let params =
        BloomParams::stored(blocks * 40, FalsePositiveRate::new(0.01).unwrap(), blocks).unwrap();
    BloomFilter::new(params, hasher(hash)).unwrap()
}

fn classic(bits: u64, hash: HashAlgorithm) -> ClassicBloom {
    let hashes = bits.min(7) as u32;
    let params =
        ClassicParams::stored(bits, FalsePositiveRate::new(0.01).unwrap(), bits, hashes).unwrap();
    // Built like a stored filter, because `ClassicParams::new` doesn't take a number of bits.
    let words = vec![0; params.words() as usize];
    ClassicBloom::from_words(params, hasher(hash), 0, words).unwrap()
}

fn written(set: &impl Persist) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(set, b"position", &mut bytes).unwrap();
    bytes
}

fn load_set(bytes: &[u8]) -> AnySet {
    read(bytes, bytes.len() as u64, Some(&secret())).unwrap().set
}

/// Fills the set, writes and reads a snapshot of it, and compares the two.
fn assert_round_trip<S: Persist + Membership>(set: &S, keys: u64) {
    let family = set.family();
    for key in 0..keys {
        set.insert(&key.to_le_bytes());
    }
    let items = set.stats().items;
    let bytes = written(set);
    let Loaded { header, set: loaded } =
        read(bytes.as_slice(), bytes.len() as u64, Some(&secret())).unwrap();

    assert_eq!(header.position(), b"position");
    assert_eq!((header.family(), header.items()), (family, items));
    assert_eq!(header.total_bytes(), bytes.len() as u64);
    assert_eq!(read_header(bytes.as_slice()), Ok(header));
    assert!(written(&loaded) == bytes, "{family:?} differs when it is written again");

    let loaded = loaded;
    assert_eq!((loaded.stats(), loaded.family()), (set.stats(), family));
    for key in 0..2 * items {
        let key = key.to_le_bytes();
        assert_eq!(loaded.contains(&key), set.contains(&key));
    }
    for key in keys..keys + 10 {
        loaded.insert(&key.to_le_bytes());
        assert!(loaded.contains(&key.to_le_bytes()));
    }
    assert_eq!(loaded.stats().items, items + 10);
}

#[test]
#[cfg_attr(miri, ignore = "too many cases")]
fn bloom_snapshots_of_every_size_round_trip() {
    for hash in HashAlgorithm::ALL {
        for blocks in (1..=65).chain([1023, 1024, 1025, 3000]) {
            assert_round_trip(&bloom(blocks, hash), blocks * 3);
        }
    }
    assert_round_trip(&bloom(5, HashAlgorithm::Xxh3), 0);
}

#[test]
#[cfg_attr(miri, ignore = "too many cases")]
fn classic_snapshots_of_every_size_round_trip() {
    for bits in 1..=2049 {
        assert_round_trip(&classic(bits, HashAlgorithm::ALL[bits as usize % 3]), bits / 8 + 1);
    }
    // Around the buffer size, and several buffers long.
    for bits in [524_287, 524_288, 524_289, 1_048_583, 2_000_003] {
        assert_round_trip(&classic(bits, HashAlgorithm::Xxh3), 1000);
    }
    assert_round_trip(&classic(77, HashAlgorithm::SipHash13), 0);
}

#[test]
#[cfg_attr(miri, ignore = "too many cases")]
fn bitmap_snapshots_of_every_range_length_round_trip() {
    for ids in 1..=2049 {
        let bitmap = Bitmap::new();
        (0..ids).for_each(|id: u64| _ = bitmap.insert_id(id.wrapping_sub(ids / 2)));
        // A loaded bitmap is compact; compare its memory with that of a compact one.
        bitmap.compact();
        assert_round_trip(&bitmap, 0);
    }
    assert_round_trip(&Bitmap::new(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "too many cases")]
fn bitmap_snapshot_of_mixed_chunks_round_trips() {
    let bitmap = Bitmap::new();
    for id in 0..200_000_u64 {
        bitmap.insert_id(id);
        bitmap.insert_id((1 << 40) + 17 * id);
        bitmap.insert_id(u64::MAX - 1_000_003 * id);
    }
    // One array of maximum length, and one page with the minimum number of ids.
    for id in 0..4096 {
        bitmap.insert_id((7 << 50) + 2 * id);
        bitmap.insert_id((8 << 50) + 2 * id);
    }
    bitmap.insert_id((8 << 50) + 1);
    bitmap.compact();
    assert_round_trip(&bitmap, 0);
    bitmap.insert(b"not an integer");
    assert_round_trip(&bitmap, 0);
}

#[test]
fn snapshot_includes_ids_in_the_overlay() {
    let bitmap = Bitmap::new();
    for id in 0..500 {
        bitmap.insert_id(id * 1_000_003);
        if id.is_multiple_of(50) {
            let bytes = written(&bitmap);
            let AnySet::Bitmap(loaded) = load_set(&bytes) else {
                panic!("another family was read")
            };
            assert_eq!(loaded.len(), id + 1);
            assert!((0..=id).all(|id| loaded.contains_id(id * 1_000_003)));
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many cases")]
fn exact_set_snapshots_of_every_size_round_trip() {
    for count in 0..=300_usize {
        let set = ExactSet::new();
        // The empty key, and others up to some thousand bytes.
        (0..count).for_each(|n| _ = set.insert(&vec![n as u8; n * n % 3001]));
        let bytes = written(&set);
        let AnySet::Exact(loaded) = load_set(&bytes) else { panic!("another family was read") };
        assert_eq!(loaded.sorted_keys(), set.sorted_keys());
        assert_eq!((loaded.stats().items, loaded.len()), (count as u64, set.len()));
        assert!(written(&loaded) == bytes);
        assert!(loaded.insert(b"one more") && loaded.contains(b"one more"));
    }
}

#[test]
fn exact_families_are_read_without_a_secret() {
    for bytes in [written(&Bitmap::new()), written(&ExactSet::new())] {
        let loaded = read(bytes.as_slice(), bytes.len() as u64, None).unwrap();
        let header = loaded.header;
        assert_eq!(
            (header.hash_algorithm(), header.secret_fingerprint(), header.nonce()),
            (None, None, None)
        );
        assert_eq!((header.planned_items(), header.false_positive_rate()), (None, None));
    }
}

#[test]
fn loaded_filter_can_be_merged_with_the_original() {
    let (one, other) = (bloom(3, HashAlgorithm::Aes128), bloom(3, HashAlgorithm::Aes128));
    one.insert(b"one");
    other.insert(b"other");
    let bytes = written(&other);
    let AnySet::Bloom(other) = load_set(&bytes) else { panic!("another family was read") };
    one.merge(&other).unwrap();
    assert!(one.contains(b"one") && one.contains(b"other"));
    assert_eq!(one.stats().items, 2);
}

#[test]
fn position_of_4096_bytes_is_accepted_and_4097_refused() {
    let set = bloom(1, HashAlgorithm::Xxh3);
    let position: Vec<u8> = (0..MAX_POSITION_BYTES + 1).map(|at| at as u8).collect();
    let (_, longest) = position.split_first().unwrap();
    let mut bytes = Vec::new();
    write(&set, longest, &mut bytes).unwrap();
    assert_eq!(read_header(bytes.as_slice()).unwrap().position(), longest);
    let refused = write(&set, &position, Vec::new());
    assert_eq!(refused, Err(Error::PositionTooLong { bytes: 4097 }));
}

/// Returns a few bytes at a time, with interruptions between them.
struct ShortReads<'a>(&'a [u8], usize);

impl Read for ShortReads<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.1 += 1;
        if self.1.is_multiple_of(2) {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let some = buffer.len().min(1 + self.1 % 7);
        self.0.read(&mut buffer[..some])
    }
}

#[test]
fn snapshot_is_read_from_short_and_interrupted_reads() {
    let set = classic(10_001, HashAlgorithm::SipHash13);
    set.insert(b"present");
    let bytes = written(&set);
    let reader = ShortReads(&bytes, 0);
    let loaded = read(reader, bytes.len() as u64, Some(&secret())).unwrap();
    assert!(written(&loaded.set) == bytes);
}

/// Accepts the given number of bytes, and then fails like a full disk.
struct FullAfter(usize);

impl Write for FullAfter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let some = bytes.len().min(self.0);
        self.0 -= some;
        if some == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(some) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many cases")]
fn writer_failure_at_any_byte_is_an_error() {
    let set = classic(1_000, HashAlgorithm::SipHash13);
    let length = written(&set).len();
    for capacity in 0..length {
        let failed = write(&set, b"position", FullAfter(capacity));
        let full = std::io::ErrorKind::StorageFull;
        assert!(matches!(failed, Err(Error::Io { kind, .. }) if kind == full), "{capacity}");
    }
    write(&set, b"position", FullAfter(length)).unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "too many cases")]
fn failing_reader_is_an_io_error_not_a_truncation() {
    let bytes = written(&bloom(2, HashAlgorithm::Xxh3));
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::ConnectionReset.into())
        }
    }
    for at in 0..bytes.len() {
        let failed = read(bytes[..at].chain(Broken), bytes.len() as u64, Some(&secret()));
        let reset = std::io::ErrorKind::ConnectionReset;
        assert!(matches!(failed, Err(Error::Io { kind, .. }) if kind == reset), "{at}");
    }
}

#[test]
fn debug_output_contains_neither_position_nor_key() {
    let bytes = written(&bloom(1, HashAlgorithm::Xxh3));
    let loaded = read(bytes.as_slice(), bytes.len() as u64, Some(&secret())).unwrap();
    let text = format!("{loaded:?}");
    assert!(text.contains("position_bytes: 8") && text.contains("redacted"), "{text}");
    assert!(!text.contains(&format!("{:?}", loaded.header.position())), "{text}");
}
