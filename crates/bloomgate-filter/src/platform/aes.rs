//! AES-128 encryption of one block with AES-NI.
//!
//! The crate `aes` uses the same instructions, but takes ten times as long for a single block: it
//! is optimised for long runs of blocks.
#![expect(unsafe_code, reason = "AES instructions")]

use std::arch::x86_64::*;

use zeroize::Zeroizing;

/// The key schedule of AES-128, and the proof that the processor has AES-NI.
#[derive(Clone)]
pub(crate) struct AesNi {
    round_keys: Zeroizing<[__m128i; 11]>,
}

impl AesNi {
    /// Expands `key`. `None` if the processor has no AES-NI.
    pub(crate) fn new(key: &[u8; 16]) -> Option<Self> {
        if !(is_x86_feature_detected!("aes") && is_x86_feature_detected!("sse4.1")) {
            return None;
        }
        // SAFETY: both features have just been detected.
        Some(Self { round_keys: Zeroizing::new(unsafe { expand(u128::from_le_bytes(*key)) }) })
    }

    /// Encrypts `block`: 16 bytes, the first one least significant.
    #[inline]
    pub(crate) fn encrypt(&self, block: u128) -> u128 {
        // SAFETY: a value of this type exists only where `new` has detected both features.
        unsafe { encrypt(&self.round_keys, block) }
    }
}

#[target_feature(enable = "aes,sse4.1")]
#[inline]
fn vector(block: u128) -> __m128i {
    _mm_set_epi64x((block >> 64) as i64, block as i64)
}

#[target_feature(enable = "aes,sse4.1")]
fn encrypt(round_keys: &[__m128i; 11], block: u128) -> u128 {
    let [first, middle @ .., last] = round_keys;
    let mut state = _mm_xor_si128(vector(block), *first);
    for round_key in middle {
        state = _mm_aesenc_si128(state, *round_key);
    }
    state = _mm_aesenclast_si128(state, *last);
    let low = _mm_cvtsi128_si64(state).cast_unsigned();
    let high = _mm_extract_epi64::<1>(state).cast_unsigned();
    u128::from(low) | u128::from(high) << 64
}

/// The key expansion of FIPS 197, section 5.2.
#[target_feature(enable = "aes,sse4.1")]
fn expand(key: u128) -> [__m128i; 11] {
    let mut round_keys = [vector(key); 11];
    for (at, constant) in
        [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36].into_iter().enumerate()
    {
        round_keys[at + 1] = next(round_keys[at], constant);
    }
    round_keys
}

/// One round key from the one before.
#[target_feature(enable = "aes,sse4.1")]
fn next(key: __m128i, constant: i32) -> __m128i {
    // The last round of the cipher substitutes bytes and shifts rows. In a block of four equal
    // words the shift has no effect, which leaves the substitution of the key expansion.
    let last = _mm_extract_epi32::<3>(key).rotate_right(8);
    let substituted = _mm_aesenclast_si128(_mm_set1_epi32(last), _mm_setzero_si128());
    // Word i of a round key is the XOR of the words 0 to i of the previous round key and of the
    // substituted word.
    let key = _mm_xor_si128(key, _mm_slli_si128::<4>(key));
    let key = _mm_xor_si128(key, _mm_slli_si128::<8>(key));
    _mm_xor_si128(key, _mm_xor_si128(substituted, _mm_set1_epi32(constant)))
}
