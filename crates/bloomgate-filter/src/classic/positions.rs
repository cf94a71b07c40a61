//! Which bits belong to a hash; specified at [`ClassicBloom`](super::ClassicBloom).

use crate::hash::KeyHash;

#[cfg(test)]
mod tests;

/// The positions of `hash` in a filter of `bits` bits, `hashes` of them, each less than `bits`.
///
/// Needs `bits` to be at least 1, and at least 2 if there are two hashes or more; every
/// [`ClassicParams`](crate::ClassicParams) sees to that.
#[inline]
pub(super) fn positions(hash: KeyHash, bits: u64, hashes: u32) -> impl Iterator<Item = u64> {
    // Odd, so that the states of one key are all different, and with them the outputs.
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

/// The finaliser of SplitMix64: a bijection in which every bit of the input can flip every bit of
/// the output.
#[inline]
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Maps a uniform `x` onto `0..limit` (see [`block_index`](crate::layout::block_index)).
#[inline]
fn map_to_range(x: u64, limit: u64) -> u64 {
    ((u128::from(x) * u128::from(limit)) >> 64) as u64
}
