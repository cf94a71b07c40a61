//! Modes of a layer: gate-only and reading.

use std::fmt;
use std::marker::PhantomData;

use http::HeaderName;

use super::reply::DefaultReply;

/// The mode of a layer that only checks; see [`Guard::gate_layer`](crate::Guard::gate_layer).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CheckOnly;

/// The mode of a layer that reads the row; see [`Guard::layer`](crate::Guard::layer).
///
/// `M` is the layer's marker, `E` makes its error reply.
pub struct ReadThrough<M = (), E = DefaultReply> {
    pub(super) on_error: E,
    pub(super) stale_header: Option<HeaderName>,
    pub(super) marker: PhantomData<fn() -> M>,
}

impl ReadThrough {
    pub(super) fn new() -> Self {
        Self { on_error: DefaultReply, stale_header: None, marker: PhantomData }
    }
}

impl<M, E: Clone> Clone for ReadThrough<M, E> {
    fn clone(&self) -> Self {
        Self {
            on_error: self.on_error.clone(),
            stale_header: self.stale_header.clone(),
            marker: PhantomData,
        }
    }
}

impl<M, E> fmt::Debug for ReadThrough<M, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadThrough")
            .field("marker", &std::any::type_name::<M>())
            .field("stale_header", &self.stale_header)
            .finish_non_exhaustive()
    }
}
