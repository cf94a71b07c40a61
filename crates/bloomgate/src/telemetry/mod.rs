//! What can be measured of a guard: counters, the status document, what goes to the log.

mod counts;
mod log_limiter;
mod status;

pub(crate) use counts::{Counts, LoaderCounts, SharedCounts};
pub(crate) use log_limiter::LogLimiter;
pub use status::{
    CacheCounts, CountsStatus, GateState, GateStatus, InFlight, LoaderStatus, NullsStored,
    SharedCacheCounts, Status,
};
