//! The keyed hash: from canonical bytes to a block and its bits.
//!
//! A filter hashes under a *generation key*, derived from the master [`Secret`] and a nonce with
//! HKDF-SHA256 (RFC 5869): salt = nonce, info = `"bloomgate generation key v1 "` and the name of
//! the algorithm. Whoever does not know the secret can neither compute keys that pass nor carry
//! one that passes from one nonce to the next.

use std::fmt;

use siphasher::sip::SipHasher13;
use xxhash_rust::xxh3::xxh3_128_with_secret;
use zeroize::Zeroizing;

mod secret;
#[cfg(test)]
mod tests;

pub use secret::Secret;

/// What the info string of a generation key begins with; the algorithm's name follows.
const LABEL: &str = "bloomgate generation key v1 ";

/// The keyed hash algorithms, each specified elsewhere and fixed for ever.
///
/// There is no `Default`, because the right choice depends on who chooses the keys. On its own this
/// crate suggests [`Xxh3`](Hash::Xxh3), the fastest, for key spaces that are trusted. A guard whose
/// keys come from strangers wants [`SipHash13`](Hash::SipHash13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hash {
    /// SipHash-1-3 with a 128-bit key (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
    /// 2012, with one and three rounds): made to stay unpredictable to whoever sees outputs.
    ///
    /// Its 64 bits give the block. The bits within the block come from a second mixing of the same
    /// 64: `(h ^ (h >> 32)) * 0x9E3779B97F4A7C15` modulo 2^64.
    SipHash13,
    /// XXH3 with 128 bits of output and a secret of 192 bytes (the xxHash specification, version
    /// 0.8): the upper half gives the block, the lower half the bits within it.
    ///
    /// Its authors claim nothing against adversaries, and for keys of up to eight bytes one leaked
    /// hash would predict others. Use it where nobody hostile chooses the keys.
    Xxh3,
}

impl Hash {
    /// The number that stands for the algorithm in stored data: 1 SipHash-1-3, 2 XXH3-128.
    pub const fn id(self) -> u8 {
        match self {
            Self::SipHash13 => 1,
            Self::Xxh3 => 2,
        }
    }

    /// The algorithm that [`id`](Hash::id) gave the number of, or `None` for an unknown number.
    pub const fn from_id(id: u8) -> Option<Self> {
        match id {
            1 => Some(Self::SipHash13),
            2 => Some(Self::Xxh3),
            _ => None,
        }
    }

    /// The name of the algorithm: `siphash-1-3` or `xxh3-128`.
    ///
    /// It takes part in the derivation of the generation key and therefore never changes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SipHash13 => "siphash-1-3",
            Self::Xxh3 => "xxh3-128",
        }
    }
}

/// A hash function under one generation key.
///
/// Equal algorithm, secret and nonce give equal hashes, in every process and on every target.
/// `Debug` prints the algorithm only, and the derived key is overwritten when the value is dropped.
///
/// ```
/// use bloomgate_filter::{Hash, KeyedHasher, Secret};
///
/// let secret = Secret::generate()?;
/// let hasher = KeyedHasher::new(Hash::SipHash13, &secret, b"nonce of 16 byte");
/// assert_eq!(hasher.algorithm(), Hash::SipHash13);
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
#[derive(Clone)]
pub struct KeyedHasher(GenerationKey);

#[derive(Clone)]
enum GenerationKey {
    SipHash13(Zeroizing<[u64; 2]>),
    Xxh3(Zeroizing<[u8; 192]>),
}

impl KeyedHasher {
    /// Derives the generation key for `hash` from `secret` and `nonce`.
    ///
    /// The nonce need not be secret, only different for each generation: 16 random bytes will do.
    /// Costs a few microseconds.
    pub fn new(hash: Hash, secret: &Secret, nonce: &[u8; 16]) -> Self {
        let info = [LABEL.as_bytes(), hash.name().as_bytes()];
        Self(match hash {
            Hash::SipHash13 => {
                let key = u128::from_le_bytes(*secret.derive::<16>(nonce, &info));
                GenerationKey::SipHash13(Zeroizing::new([key as u64, (key >> 64) as u64]))
            }
            Hash::Xxh3 => GenerationKey::Xxh3(secret.derive(nonce, &info)),
        })
    }

    /// The hash of `bytes`, for [`BloomFilter::contains_hash`](crate::BloomFilter::contains_hash).
    ///
    /// Costs a few nanoseconds for short keys and does not allocate.
    #[inline]
    pub fn hash(&self, bytes: &[u8]) -> KeyHash {
        match &self.0 {
            GenerationKey::SipHash13(key) => {
                let h = SipHasher13::new_with_keys(key[0], key[1]).hash(bytes);
                // The block is read from the top of `h`. Both steps are bijections, so the bits
                // are uniform among the keys of one block; the product carries the low bits of
                // `h`, which the block leaves free, up to where the bits are read.
                let bits = (h ^ (h >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                KeyHash { block: h, bits }
            }
            GenerationKey::Xxh3(key) => {
                let h = xxh3_128_with_secret(bytes, &**key);
                KeyHash { block: (h >> 64) as u64, bits: h as u64 }
            }
        }
    }

    /// The algorithm this hasher was made for.
    #[inline]
    pub fn algorithm(&self) -> Hash {
        match self.0 {
            GenerationKey::SipHash13(_) => Hash::SipHash13,
            GenerationKey::Xxh3(_) => Hash::Xxh3,
        }
    }
}

impl fmt::Debug for KeyedHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyedHasher({}, redacted)", self.algorithm().name())
    }
}

/// The hash of one key under one [`KeyedHasher`].
///
/// Hashing once and asking several times saves time. The value means something only to filters
/// with the same hasher. It can't be looked into: a hash that leaks helps to predict others, so
/// there is neither an accessor nor a telling `Debug`.
#[derive(Clone, Copy)]
pub struct KeyHash {
    /// Chooses the block: only its top bits count.
    pub(crate) block: u64,
    /// Chooses the bits in the block: only the upper 48 count.
    pub(crate) bits: u64,
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(redacted)")
    }
}
