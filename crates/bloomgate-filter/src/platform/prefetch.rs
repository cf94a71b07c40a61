//! Asks the processor for a cache line that will be needed soon.

use crate::block::Block;

/// Asks for `block`. A hint: it changes nothing but time, and on other processors does nothing.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
pub(crate) fn prefetch(block: &Block) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: SSE, which every x86-64 processor has, and the address is that of a live reference.
    // (The instruction does not even fault on addresses that are none.)
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(block).cast()) }
}

/// Asks for `block`: does nothing here, for there is no stable way to ask.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn prefetch(_block: &Block) {}
