//! Huge pages for large allocations.

/// Advises the operating system to back `memory`, which must not have been written to yet, with
/// huge pages.
///
/// A lookup in a filter larger than the reach of the processor's TLB (8 MiB with pages of 4 KiB, on
/// many processors) waits for the address translation before it waits for the cache line. With
/// pages of 2 MiB the TLB reaches gigabytes. This is a hint that affects only time. It takes no
/// memory beyond the allocation, because only huge pages that lie entirely within it are used.
#[cfg(all(target_os = "linux", not(miri)))]
#[expect(unsafe_code, reason = "a call of the C library")]
pub(crate) fn advise_huge_pages<T>(memory: &mut [std::mem::MaybeUninit<T>]) {
    use std::ffi::{c_int, c_void};

    unsafe extern "C" {
        fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
    }

    /// The same on all architectures (`asm-generic/mman-common.h`).
    const MADV_HUGEPAGE: c_int = 14;
    /// A multiple of every usual page size; the call requires page alignment.
    const ALIGNMENT: usize = 64 * 1024;
    /// The usual size of a huge page.
    const HUGE: usize = 2 * 1024 * 1024;

    let length = size_of_val(memory);
    if length < 2 * HUGE {
        return;
    }
    let start = memory.as_mut_ptr();
    let skipped = start.addr().next_multiple_of(ALIGNMENT) - start.addr();
    let whole = (length - skipped) / ALIGNMENT * ALIGNMENT;
    // SAFETY: the range lies within a live allocation that is borrowed exclusively, and this advice
    // does not change the contents of the memory. Its failure can be ignored.
    let _ = unsafe { madvise(start.cast::<u8>().add(skipped).cast(), whole, MADV_HUGEPAGE) };
}

/// Does nothing on this target.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn advise_huge_pages<T>(_memory: &mut [std::mem::MaybeUninit<T>]) {}
