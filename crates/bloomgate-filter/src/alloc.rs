//! Fallible allocation of large vectors.

use crate::error::Error;
use crate::platform::huge_pages::advise_huge_pages;

/// An empty vector with capacity for `count` elements of `bytes` bytes in total, backed by huge
/// pages where the system permits.
///
/// A refused allocation is [`Error::OutOfMemory`] instead of an abort.
pub(crate) fn try_vec_with_capacity<T>(count: u64, bytes: u64) -> Result<Vec<T>, Error> {
    let mut vec = Vec::new();
    match usize::try_from(count).map(|count| vec.try_reserve_exact(count)) {
        Ok(Ok(())) => {
            advise_huge_pages(vec.spare_capacity_mut());
            Ok(vec)
        }
        _ => Err(Error::OutOfMemory { bytes }),
    }
}
