//! Logs that connect a fleet's members.

#[cfg(test)]
mod memory;

#[cfg(test)]
pub(crate) use memory::MemoryFleetLog;
