//! Prefetch of a block into the cache.

use crate::block::Block;

/// Prefetches `block`. A hint that affects only time.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
pub(crate) fn prefetch(block: &Block) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: SSE, which every x86-64 processor has, and the address is that of a live reference.
    // (The instruction does not fault, even on invalid addresses.)
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(block).cast()) }
}

/// Does nothing on this target, which has no stable prefetch intrinsic.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn prefetch(_block: &Block) {}
