//! The block lookup with AVX-512, in vectors of 256 bits.
//!
//! Compared with AVX2, rotations and masks of one bit per lane halve the number of instructions.
//! Vectors of 256 bits don't lower the processor's clock, as those of 512 bits may.
#![expect(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::*;

use super::avx2::load;
use crate::block::Block;

/// The proof that the processor has AVX-512 F and VL, and AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx2");
        has.then_some(Self(()))
    }

    #[inline]
    pub(super) fn contains(self, block: &Block, bits: u64) -> bool {
        // SAFETY: the value of this type proves the features.
        unsafe { contains(block, bits) }
    }

    #[inline]
    pub(super) fn contains_each(self, lookups: &[(&Block, u64)], answers: &mut Vec<bool>) {
        // SAFETY: the value of this type proves the features.
        unsafe { contains_each(lookups, answers) }
    }
}

#[target_feature(enable = "avx2,avx512f,avx512vl")]
fn contains_each(lookups: &[(&Block, u64)], answers: &mut Vec<bool>) {
    answers.extend(lookups.iter().map(|&(block, bits)| contains(block, bits)));
}

/// The same steps as [`word_masks`](crate::layout::word_masks), a lane for each pair of words.
#[target_feature(enable = "avx2,avx512f,avx512vl")]
#[inline]
fn contains(block: &Block, bits: u64) -> bool {
    let (first, second) = load(block);
    let bits = _mm256_set1_epi64x(bits.cast_signed());
    let selectors = _mm256_setr_epi64x(1 << 63, 1 << 62, 1 << 61, 1 << 60);
    let takes_second = _mm256_test_epi64_mask(bits, selectors);
    let words = _mm256_mask_blend_epi64(takes_second, first, second);
    let positions = _mm256_srlv_epi64(bits, _mm256_setr_epi64x(54, 43, 32, 21));
    let distances = _mm256_and_si256(
        _mm256_srlv_epi64(bits, _mm256_setr_epi64x(49, 38, 27, 16)),
        _mm256_set1_epi64x(31),
    );
    let pattern =
        _mm256_or_si256(_mm256_set1_epi64x(1), _mm256_sllv_epi64(_mm256_set1_epi64x(2), distances));
    // The rotation takes its count modulo 64.
    let mask = _mm256_rolv_epi64(pattern, positions);
    // Whether no bit of the mask is missing from the words.
    _mm256_testc_si256(words, mask) != 0
}
