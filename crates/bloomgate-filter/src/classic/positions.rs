//! The bit positions of a hash, as specified at [`ClassicBloom`](super::ClassicBloom).

use crate::hash::KeyHash;

#[cfg(test)]
mod tests;

/// The `hashes` positions of `hash` in a filter of `bits` bits, each less than `bits`.
///
/// `bits` must be at least 1, and at least 2 if there are two hashes or more; every
/// [`ClassicParams`](crate::ClassicParams) guarantees this.
#[inline]
pub(super) fn positions(hash: KeyHash, bits: u64, hashes: u32) -> impl Iterator<Item = u64> {
    // An odd step gives every index another state, and so another output.
    let step = hash.bits | 1;
    let first = map_to_range(mix(hash.block), bits);
    (0..u64::from(hashes)).map(move |i| match i {
        0 => first,
        1 => {
            let other = map_to_range(mix(hash.block.wrapping_add(step)), bits - 1);
            other + u64::from(other >= first)
        }
        _ => map_to_range(mix(hash.block.wrapping_add(step.wrapping_mul(i))), bits),
    })
}

/// The finaliser of SplitMix64: a bijection in which every input bit affects every output bit.
#[inline]
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Maps a uniform `x` to `0..limit` (see [`block_index`](crate::layout::block_index)).
#[inline]
fn map_to_range(x: u64, limit: u64) -> u64 {
    ((u128::from(x) * u128::from(limit)) >> 64) as u64
}
