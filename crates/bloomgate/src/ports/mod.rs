//! The traits that cross modules: what the guard needs of the world outside.

mod backplane;
mod fleet_log;
mod fleet_status;
mod gate_copy;
mod ids;
mod loader;
mod slot;
mod source;
mod store;

pub use backplane::{Backplane, LinkState, PeerEvents, PeerWrite};
pub use fleet_log::{
    FleetLog, FleetView, LogEntry, LogFlag, LogIdentity, LogPosition, LogReader, MemberRow,
    Registration, Step,
};
pub use fleet_status::{FleetMember, FleetStatus};
pub use gate_copy::{CopyChannel, CopyOffer, CopyReader, CopyRequest, CopySource};
pub use ids::{InstanceId, LeaseId, WriteId};
pub use loader::Loader;
pub use slot::{Entry, Filled, MAX_INTENT_WRITES, Slot, SlotKey, SlotOp, SlotReply};
pub use source::{Cursor, KeySink, Quiesced, ScanCompleted, ScanFrom, Source};
pub use store::{ClearStep, Store};
