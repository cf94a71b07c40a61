//! What an instance says of its fleet.

use serde::{Deserialize, Serialize};

/// One member's picture of its fleet, as of its last step at the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FleetStatus {
    /// This process, in hexadecimal.
    pub instance: String,
    /// The epoch of the log; empty before the first contact.
    pub epoch: String,
    /// Milliseconds until the lease ends; 0 without one.
    pub lease_left_ms: u64,
    /// The last entry of the log that has been applied here.
    pub applied: String,
    /// The last entry of the log.
    pub last: String,
    /// Number of entries in the log.
    pub log_length: u64,
    /// All members, this one included.
    pub members: Vec<FleetMember>,
    /// How often this process had to learn anew what the others write.
    pub resyncs: u64,
    /// Why, the last time.
    pub last_resync: Option<String>,
    /// Gates that were copied from another member instead of being read from the source.
    pub copies_taken: u64,
    /// Copies of the gate that this process gave to others.
    pub copies_given: u64,
    /// Why this process was refused a copy, the last time.
    pub last_copy_refusal: Option<String>,
    /// How many silent members this process has fenced.
    pub fenced_others: u64,
    /// Writes of this process that had to wait for other members.
    pub writes_waited: u64,
    /// The longest of these waits, in milliseconds.
    pub longest_wait_ms: u64,
}

/// A member in a [`FleetStatus`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FleetMember {
    /// The process, in hexadecimal.
    pub instance: String,
    /// What its user calls it.
    pub label: String,
    /// The last entry of the log that it says it has applied.
    pub applied: String,
    /// True once its leases were taken away, until it registers again.
    pub fenced: bool,
}
