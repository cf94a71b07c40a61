//! Counters, the status document, limits on log lines.

mod counts;
mod log_limiter;
mod status;

pub(crate) use counts::{Counts, LoaderCounts, SharedCounts};
pub(crate) use log_limiter::LogLimiter;
pub use status::{
    CacheCounts, CountsStatus, GateState, GateStatus, InFlight, Instances, LoaderStatus,
    NullsStored, SharedCacheCounts, Status,
};
