//! Memory for many things at once: refused as an error, not by aborting.

use crate::error::Error;
use crate::platform::huge_pages::advise_huge_pages;

/// An empty vector in which `count` things of `bytes` bytes in all find room, if the system permits
/// in large pages.
pub(crate) fn try_vec_with_capacity<T>(count: u64, bytes: u64) -> Result<Vec<T>, Error> {
    let mut room = Vec::new();
    match usize::try_from(count).map(|count| room.try_reserve_exact(count)) {
        Ok(Ok(())) => {
            advise_huge_pages(room.spare_capacity_mut());
            Ok(room)
        }
        _ => Err(Error::OutOfMemory { bytes }),
    }
}
