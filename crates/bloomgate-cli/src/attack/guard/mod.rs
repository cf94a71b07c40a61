//! The guard's counters: [`reader`] (over HTTP), [`status`] (the document), [`change`] (during a run).

pub(crate) mod change;
pub(crate) mod reader;
pub(crate) mod status;
