//! SipHash-1-3 of one contiguous slice.
//!
//! Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012, with one round a word and three
//! at the end. Implemented here to keep the dependencies few; the tests compare it with the crate
//! `siphasher`.

use super::short_word;

/// The hash of `bytes` under the two halves of a 128-bit key.
// Not inlined: the callers inline all hashes, and this one would occupy most of their registers.
#[inline(never)]
pub(super) fn siphash13(key: &[u64; 2], bytes: &[u8]) -> u64 {
    // "somepseudorandomlygeneratedbytes", as in the paper.
    let mut state = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        absorb(&mut state, u64::from_le_bytes(*word));
    }
    // The length modulo 256 in the top byte, which the remaining bytes never use.
    absorb(&mut state, short_word(rest) | (bytes.len() as u64) << 56);
    state[2] ^= 0xff;
    for _ in 0..3 {
        round(&mut state);
    }
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

#[inline(always)]
fn absorb(state: &mut [u64; 4], word: u64) {
    state[3] ^= word;
    round(state);
    state[0] ^= word;
}

#[inline(always)]
fn round(state: &mut [u64; 4]) {
    let [a, b, c, d] = state;
    *a = a.wrapping_add(*b);
    *c = c.wrapping_add(*d);
    *b = b.rotate_left(13) ^ *a;
    *d = d.rotate_left(16) ^ *c;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*b);
    *a = a.wrapping_add(*d);
    *b = b.rotate_left(17) ^ *c;
    *d = d.rotate_left(21) ^ *a;
    *c = c.rotate_left(32);
}
