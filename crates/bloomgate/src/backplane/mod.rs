//! The link to the other instances of a service.
//!
//! With a shared cache, a guard is one of a fleet of instances that keep each other in step through
//! the cache's server: [`FleetSettings`], and [`GuardBuilder::fleet`](crate::GuardBuilder::fleet).
//! [`Alone`] is for a guard without a shared cache, or one that its user declares to be the only
//! instance.

mod alone;
mod declared_single;
mod fleet;

pub use alone::Alone;
pub(crate) use declared_single::DeclaredSingle;
pub(crate) use fleet::Fleet;
pub use fleet::FleetSettings;
