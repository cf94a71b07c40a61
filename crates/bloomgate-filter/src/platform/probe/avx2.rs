//! The block lookup with AVX2.
#![expect(unsafe_code, reason = "vector instructions")]

#[cfg(not(miri))]
use std::arch::asm;
use std::arch::x86_64::*;
use std::sync::atomic::{Ordering, fence};

use crate::block::Block;

/// The proof that the processor has AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    #[inline]
    pub(super) fn contains(self, block: &Block, bits: u64) -> bool {
        // SAFETY: the value of this type proves AVX2.
        unsafe { contains(block, bits) }
    }

    #[inline]
    pub(super) fn contains_each(self, lookups: &[(&Block, u64)], answers: &mut Vec<bool>) {
        // SAFETY: the value of this type proves AVX2.
        unsafe { contains_each(lookups, answers) }
    }
}

#[target_feature(enable = "avx2")]
fn contains_each(lookups: &[(&Block, u64)], answers: &mut Vec<bool>) {
    answers.extend(lookups.iter().map(|&(block, bits)| contains(block, bits)));
}

/// The same steps as [`word_masks`](crate::layout::word_masks), a lane for each pair of words.
#[target_feature(enable = "avx2")]
#[inline]
fn contains(block: &Block, bits: u64) -> bool {
    let (first, second) = load(block);
    let bits = _mm256_set1_epi64x(bits.cast_signed());
    // Lane `pair` is shifted left so that the selector of its pair becomes the sign bit.
    let selectors = _mm256_sllv_epi64(bits, _mm256_setr_epi64x(0, 1, 2, 3));
    let words = _mm256_castpd_si256(_mm256_blendv_pd(
        _mm256_castsi256_pd(first),
        _mm256_castsi256_pd(second),
        _mm256_castsi256_pd(selectors),
    ));
    let positions = _mm256_srlv_epi64(bits, _mm256_setr_epi64x(54, 43, 32, 21));
    let distances = _mm256_and_si256(
        _mm256_srlv_epi64(bits, _mm256_setr_epi64x(49, 38, 27, 16)),
        _mm256_set1_epi64x(31),
    );
    let one = _mm256_set1_epi64x(1);
    // A shift by a sum modulo 64 replaces a rotation; shifts don't take counts above 63.
    let others = _mm256_add_epi64(_mm256_add_epi64(positions, distances), one);
    let modulo = _mm256_set1_epi64x(63);
    let mask = _mm256_or_si256(
        _mm256_sllv_epi64(one, _mm256_and_si256(positions, modulo)),
        _mm256_sllv_epi64(one, _mm256_and_si256(others, modulo)),
    );
    // Whether no bit of the mask is missing from the words.
    _mm256_testc_si256(words, mask) != 0
}

/// The words 0 to 3 and the words 4 to 7 of `block`.
///
/// Other threads set bits concurrently. In Rust's memory model a plain vector load would race with
/// them, which is undefined behaviour, and there is no atomic load of 32 bytes. Inline assembly is
/// sound if its effect is one that Rust code could have. This is the case: each 8 bytes of these
/// loads act as a relaxed atomic load of one word. The operands are aligned to 32 bytes, so no word
/// crosses a cache line, and x86 never tears an aligned word, alone or as a part of a vector. The
/// fence makes acquire loads of them; on x86 it takes no instruction and only restricts the
/// compiler.
///
/// The alternative without assembly is four scalar atomic loads, combined into a vector. A whole
/// lookup took about a fifth longer with it, in a prototype with a filter that fits the cache.
#[cfg(not(miri))]
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn load(block: &Block) -> (__m256i, __m256i) {
    let (first, second);
    // SAFETY: reads the 64 bytes of a live `Block`, aligned to 64, and writes only the two
    // registers. It is not `pure`: two reads of the same block may differ.
    unsafe {
        asm!(
            "vmovdqa {first}, ymmword ptr [{words}]",
            "vmovdqa {second}, ymmword ptr [{words} + 32]",
            words = in(reg) block.0.as_ptr(),
            first = out(ymm_reg) first,
            second = out(ymm_reg) second,
            options(readonly, nostack, preserves_flags),
        );
    }
    fence(Ordering::Acquire);
    (first, second)
}

/// The equivalent of the assembly for Miri, which supports the vector types but no assembly.
#[cfg(miri)]
#[target_feature(enable = "avx2")]
pub(super) fn load(block: &Block) -> (__m256i, __m256i) {
    let words = block.0.each_ref().map(|word| word.load(Ordering::Relaxed).cast_signed());
    fence(Ordering::Acquire);
    let [a, b, c, d, e, f, g, h] = words;
    (_mm256_setr_epi64x(a, b, c, d), _mm256_setr_epi64x(e, f, g, h))
}
