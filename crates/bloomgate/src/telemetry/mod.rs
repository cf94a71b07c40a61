//! What can be measured of a guard: counters, the status document, what goes to the log.

mod counts;
mod seldom;
mod status;

pub(crate) use counts::{Counts, LoaderCounts, SharedCounts};
pub(crate) use seldom::Seldom;
pub use status::{
    CacheCounts, CountsStatus, GateState, GateStatus, InFlight, LoaderStatus, NullsStored,
    SharedCacheCounts, Status,
};
