//! The keyed hash of canonical key bytes.
//!
//! A filter hashes under a *generation key*, derived from the master [`Secret`] and a nonce with
//! HKDF-SHA256 (RFC 5869): salt = nonce, info = `"bloomgate generation key v1 "` and the name of
//! the algorithm. Without the secret, an attacker can't compute false positives, and false positives
//! found under one nonce pass under the next only at the false-positive rate.

use std::fmt;

use xxhash_rust::xxh3::xxh3_128_with_secret;
use zeroize::Zeroizing;

mod cmac;
mod secret;
mod sip;
#[cfg(test)]
mod tests;

use cmac::CmacKey;
pub use secret::Secret;
use sip::siphash13;

/// The prefix of the info string of a generation key; the algorithm's name follows.
const LABEL: &str = "bloomgate generation key v1 ";

/// The keyed hash algorithms. Each is publicly specified and never changes.
///
/// | | suited to | time for a key of 8 bytes | security without the secret |
/// |---|---|---|---|
/// | [`Aes128`](HashAlgorithm::Aes128) | untrusted keys | 1.5 to 2 × XXH3 with the processor's AES, some 200 × without | pseudorandom, if AES is |
/// | [`SipHash13`](HashAlgorithm::SipHash13) | untrusted keys, on processors without AES | 4 to 5 × XXH3 | no known way to predict its hashes |
/// | [`Xxh3`](HashAlgorithm::Xxh3) | trusted keys | 1 | none claimed |
///
/// (`cargo bench -p bloomgate-filter` prints the times. With `RUSTFLAGS='--cfg aes_backend="soft"'`
/// the crate `aes` doesn't use the processor's AES.)
///
/// No algorithm hides whether a given key passes. An attacker who can query the filter can collect
/// false positives by trial; they pass until the next nonce. An attacker who knows the secret can
/// compute them.
///
/// There is no `Default`, because the right choice depends on whether the keys are trusted.
///
/// ```
/// use bloomgate_filter::HashAlgorithm;
///
/// assert_eq!(HashAlgorithm::Aes128.name(), "aes-128-cmac");
/// assert_eq!(HashAlgorithm::from_id(HashAlgorithm::Aes128.id()), Some(HashAlgorithm::Aes128));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HashAlgorithm {
    /// SipHash-1-3 with a 128-bit key (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
    /// 2012, with one and three rounds): designed to be unpredictable from observed outputs. The
    /// paper proposes two and four rounds; the hash tables of Rust's standard library use one and
    /// three.
    ///
    /// Its 64 bits select the block. The bits within the block come from a second mixing of the
    /// same 64 bits: `(h ^ (h >> 32)) * 0x9E3779B97F4A7C15` modulo 2^64.
    SipHash13,
    /// XXH3 with 128 bits of output and a secret of 192 bytes (the xxHash specification, version
    /// 0.8): the upper half selects the block, the lower half the bits within it.
    ///
    /// Its authors claim no security. For keys of up to eight bytes it is a fixed bijection of the
    /// key combined with one 64-bit value derived from the secret, so that one leaked hash predicts
    /// all others. Use it only where no attacker can choose the keys.
    Xxh3,
    /// AES-128-CMAC (RFC 4493): the first 8 bytes of the tag, little-endian, select the block, the
    /// last 8 the bits within it.
    ///
    /// A key of up to 16 bytes takes one block encryption. Runs in constant time, with the
    /// processor's instructions on x86-64 with AES-NI, otherwise with the crate `aes`; the hashes
    /// are the same.
    Aes128,
}

impl HashAlgorithm {
    /// All algorithms.
    pub const ALL: [Self; 3] = [Self::SipHash13, Self::Xxh3, Self::Aes128];

    /// The number of the algorithm in stored data: 1 SipHash-1-3, 2 XXH3-128,
    /// 3 AES-128-CMAC.
    pub const fn id(self) -> u8 {
        match self {
            Self::SipHash13 => 1,
            Self::Xxh3 => 2,
            Self::Aes128 => 3,
        }
    }

    /// The algorithm with this [`id`](HashAlgorithm::id), or `None` for an unknown number.
    pub const fn from_id(id: u8) -> Option<Self> {
        match id {
            1 => Some(Self::SipHash13),
            2 => Some(Self::Xxh3),
            3 => Some(Self::Aes128),
            _ => None,
        }
    }

    /// The name of the algorithm: `siphash-1-3`, `xxh3-128` or `aes-128-cmac`.
    ///
    /// It is an input of the key derivation and therefore never changes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SipHash13 => "siphash-1-3",
            Self::Xxh3 => "xxh3-128",
            Self::Aes128 => "aes-128-cmac",
        }
    }
}

/// A hash function under one generation key.
///
/// Equal algorithm, secret and nonce give equal hashes, in every process and on every target.
/// `Debug` prints the algorithm only, and the derived key is overwritten when the value is dropped.
///
/// ```
/// use bloomgate_filter::{HashAlgorithm, KeyedHasher, Secret};
///
/// let secret = Secret::new(b"replace with 32 random bytes")?;
/// let hasher = KeyedHasher::new(HashAlgorithm::SipHash13, &secret, b"nonce of 16 byte");
/// assert_eq!(hasher.algorithm(), HashAlgorithm::SipHash13);
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
#[derive(Clone)]
pub struct KeyedHasher {
    key: GenerationKey,
    nonce: [u8; 16],
    secret_fingerprint: [u8; 8],
}

// An explicit tag instead of a niche in a variant's field: dispatch takes one comparison, and a tag
// of eight bytes keeps the keys aligned.
#[derive(Clone)]
#[repr(u64)]
enum GenerationKey {
    SipHash13(Zeroizing<[u64; 2]>),
    Xxh3(Zeroizing<[u8; 192]>),
    Aes128(CmacKey),
}

impl KeyedHasher {
    /// Derives the generation key for `algorithm` from `secret` and `nonce`.
    ///
    /// The nonce need not be secret, but must differ between generations: use 16 random bytes.
    /// Costs a few microseconds.
    pub fn new(algorithm: HashAlgorithm, secret: &Secret, nonce: &[u8; 16]) -> Self {
        let info = [LABEL.as_bytes(), algorithm.name().as_bytes()];
        let key = match algorithm {
            HashAlgorithm::SipHash13 => {
                let key = u128::from_le_bytes(*secret.derive::<16>(nonce, &info));
                GenerationKey::SipHash13(Zeroizing::new([key as u64, (key >> 64) as u64]))
            }
            HashAlgorithm::Xxh3 => GenerationKey::Xxh3(secret.derive(nonce, &info)),
            HashAlgorithm::Aes128 => {
                GenerationKey::Aes128(CmacKey::new(&secret.derive(nonce, &info)))
            }
        };
        Self { key, nonce: *nonce, secret_fingerprint: secret.fingerprint() }
    }

    /// The hash of `bytes`, for [`BloomFilter::contains_hash`](crate::BloomFilter::contains_hash).
    ///
    /// Costs a few nanoseconds for short keys and does not allocate.
    // Always inlined: most callers have keys of a constant length, and dispatching on the length
    // takes half the time of hashing eight bytes.
    #[inline(always)]
    pub fn hash(&self, bytes: &[u8]) -> KeyHash {
        match &self.key {
            GenerationKey::SipHash13(key) => siphash13_hash(key, bytes),
            GenerationKey::Xxh3(key) => xxh3_hash(key, bytes),
            GenerationKey::Aes128(key) => aes_hash(key, bytes),
        }
    }

    /// Calls `each` with the hash of each of `keys`, in their order. Dispatches on the algorithm
    /// once.
    #[inline]
    pub(crate) fn hash_each<K: AsRef<[u8]>>(&self, keys: &[K], mut each: impl FnMut(KeyHash)) {
        let keys = keys.iter().map(AsRef::as_ref);
        match &self.key {
            GenerationKey::SipHash13(key) => keys.for_each(|k| each(siphash13_hash(key, k))),
            GenerationKey::Xxh3(key) => keys.for_each(|k| each(xxh3_hash(key, k))),
            GenerationKey::Aes128(key) => keys.for_each(|k| each(aes_hash(key, k))),
        }
    }

    /// The algorithm of this hasher.
    #[inline]
    pub fn algorithm(&self) -> HashAlgorithm {
        match self.key {
            GenerationKey::SipHash13(_) => HashAlgorithm::SipHash13,
            GenerationKey::Xxh3(_) => HashAlgorithm::Xxh3,
            GenerationKey::Aes128(_) => HashAlgorithm::Aes128,
        }
    }

    /// The nonce of this hasher.
    pub fn nonce(&self) -> [u8; 16] {
        self.nonce
    }

    /// The [fingerprint](Secret::fingerprint) of the secret of this hasher.
    pub fn secret_fingerprint(&self) -> [u8; 8] {
        self.secret_fingerprint
    }

    /// Whether `other` hashes every key to the same value: same algorithm, secret and nonce.
    pub fn same_as(&self, other: &Self) -> bool {
        (self.algorithm(), self.nonce, self.secret_fingerprint)
            == (other.algorithm(), other.nonce, other.secret_fingerprint)
    }
}

impl fmt::Debug for KeyedHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyedHasher({}, redacted)", self.algorithm().name())
    }
}

#[inline(always)]
fn siphash13_hash(key: &[u64; 2], bytes: &[u8]) -> KeyHash {
    let h = siphash13(key, bytes);
    // The block is taken from the top bits of `h`. Both steps are bijections, so the bits are
    // uniform among the keys of one block: the product propagates the low bits of `h`, which don't
    // affect the block, to the top bits, which select the bits in the block.
    KeyHash { block: h, bits: (h ^ (h >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) }
}

#[inline(always)]
fn xxh3_hash(key: &[u8; 192], bytes: &[u8]) -> KeyHash {
    let h = xxh3_128_with_secret(bytes, key);
    KeyHash { block: (h >> 64) as u64, bits: h as u64 }
}

#[inline(always)]
fn aes_hash(key: &CmacKey, bytes: &[u8]) -> KeyHash {
    let h = key.tag(bytes);
    KeyHash { block: h as u64, bits: (h >> 64) as u64 }
}

/// Fewer than eight bytes as a little-endian number.
///
/// Avoids a copy through memory: a load of bytes that were just stored one by one waits for all of
/// those stores, and stalls the hashes of the next keys.
#[inline]
fn short_word(bytes: &[u8]) -> u64 {
    let (mut word, mut rest, mut shift) = (0, bytes, 0);
    if let Some((four, others)) = rest.split_first_chunk::<4>() {
        (word, rest, shift) = (u64::from(u32::from_le_bytes(*four)), others, 32);
    }
    if let Some((two, others)) = rest.split_first_chunk::<2>() {
        word |= u64::from(u16::from_le_bytes(*two)) << shift;
        (rest, shift) = (others, shift + 16);
    }
    rest.first().map_or(word, |&byte| word | u64::from(byte) << shift)
}

/// The hash of one key under one [`KeyedHasher`].
///
/// Allows several lookups with one hash computation. The value is meaningful only to filters with
/// the same hasher. It has no accessor and a redacted `Debug`, because a leaked hash helps to
/// predict others.
///
/// ```
/// use bloomgate_filter::{
///     BloomFilter, BloomParams, FalsePositiveRate, HashAlgorithm, KeyedHasher, Secret,
/// };
///
/// let secret = Secret::new(b"replace with 32 random bytes")?;
/// let hasher = KeyedHasher::new(HashAlgorithm::Aes128, &secret, &[7; 16]);
/// let params = BloomParams::new(1_000, FalsePositiveRate::new(0.01)?)?;
/// let (today, yesterday) =
///     (BloomFilter::new(params, hasher.clone())?, BloomFilter::new(params, hasher)?);
/// yesterday.insert(b"seen");
///
/// // One hash for both filters, which have the same hasher.
/// let hash = today.hash(b"seen");
/// assert!(!today.contains_hash(hash) && yesterday.contains_hash(hash));
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct KeyHash {
    /// Selects the block, by its top bits.
    pub(crate) block: u64,
    /// Selects the bits in the block, by its upper 48 bits.
    pub(crate) bits: u64,
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(redacted)")
    }
}
