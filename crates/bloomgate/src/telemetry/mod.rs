//! What can be measured of a guard: its counters, its status document.

mod counts;
mod status;

pub(crate) use counts::{Counts, LoaderCounts, SharedCounts};
pub use status::{
    CacheCounts, CountsStatus, GateState, GateStatus, InFlight, LoaderStatus, NullsStored,
    SharedCacheCounts, Status,
};
