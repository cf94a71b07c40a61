//! Asks the operating system to back a large allocation with large pages.

/// Asks for large pages under `memory`, which nothing has been written to yet.
///
/// A look-up in a filter that is larger than the processor's table of pages (8 MiB with pages of
/// 4 KiB, on many) waits for the address before it waits for the line. With pages of 2 MiB that
/// table covers gigabytes. A hint: where there are none, or the system's settings forbid them,
/// nothing changes but time. It takes no memory beyond the allocation, because only whole large
/// pages within it can be used.
#[cfg(all(target_os = "linux", not(miri)))]
#[expect(unsafe_code, reason = "a call of the C library")]
pub(crate) fn advise_huge_pages<T>(memory: &mut [std::mem::MaybeUninit<T>]) {
    use std::ffi::{c_int, c_void};

    unsafe extern "C" {
        fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
    }

    /// The same on all architectures (`asm-generic/mman-common.h`).
    const MADV_HUGEPAGE: c_int = 14;
    /// Any page size is a divisor of it; the call wants whole pages.
    const ALIGNMENT: usize = 64 * 1024;
    /// The usual size of a large page. What is smaller can't have one.
    const HUGE: usize = 2 * 1024 * 1024;

    let length = size_of_val(memory);
    if length < 2 * HUGE {
        return;
    }
    let start = memory.as_mut_ptr();
    let skipped = start.addr().next_multiple_of(ALIGNMENT) - start.addr();
    let whole = (length - skipped) / ALIGNMENT * ALIGNMENT;
    // SAFETY: the range lies within a live allocation that is borrowed exclusively, and this advice
    // does not change what is in memory. It may be refused, which is as good as not asking.
    let _ = unsafe { madvise(start.cast::<u8>().add(skipped).cast(), whole, MADV_HUGEPAGE) };
}

/// Does nothing here.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn advise_huge_pages<T>(_memory: &mut [std::mem::MaybeUninit<T>]) {}
