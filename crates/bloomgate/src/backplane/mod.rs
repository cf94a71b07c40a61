//! The link to the other instances of a service.
//!
//! [`Alone`] is for a guard without a shared cache, or one that its user declares to be the only
//! instance. With a shared cache and no such declaration, a watch notices a second instance
//! in the namespace and opens the gates of both.

mod alone;
mod fleet;
mod peer_watch;

pub use alone::Alone;
pub(crate) use fleet::Fleet;
pub use fleet::FleetSettings;
pub(crate) use peer_watch::{PeerWatch, PeerWatchSettings};
