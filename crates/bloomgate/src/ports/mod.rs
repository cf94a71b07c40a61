//! The traits that cross modules: what the guard needs of the world outside.

mod backplane;
mod ids;
mod loader;
mod peers;
mod source;
mod store;

pub use backplane::{Backplane, LinkState, PeerEvents, PeerWrite};
pub use ids::{InstanceId, LeaseId, WriteId};
pub use loader::Loader;
pub use peers::{Peer, PeerRegistry};
pub use source::{Cursor, KeySink, Quiesced, ScanCompleted, ScanFrom, Source};
pub use store::{ClearStep, Entry, Filled, Slot, SlotKey, SlotOp, SlotReply, Store};
