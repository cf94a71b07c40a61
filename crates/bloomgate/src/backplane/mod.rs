//! Keep instances in step.
//!
//! [`Alone`] is the backplane of a single instance. It isn't blind: with a shared cache it notices
//! a second instance in its namespace and opens the gates of both.

mod alone;

pub use alone::Alone;
