//! The link to the other instances of a service.
//!
//! [`Alone`] is for a guard without a shared cache, or one that its user declares to be the only
//! instance. [`FleetSettings`] are for one of several that keep each other in step through the shared
//! cache's server; see [`GuardBuilder::fleet`](crate::GuardBuilder::fleet). With a shared cache and
//! neither, a watch notices a second instance in the namespace and opens the gates of both.

mod alone;
mod fleet;
mod peer_watch;

pub use alone::Alone;
pub(crate) use fleet::Fleet;
pub use fleet::FleetSettings;
pub(crate) use peer_watch::{PeerWatch, PeerWatchSettings};
