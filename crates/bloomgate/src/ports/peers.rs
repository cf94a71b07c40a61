//! The port to the list of live instances.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::InstanceId;
use crate::error::StoreError;

/// A list of the instances that are live in a namespace, kept where all of them can reach it.
///
/// Each call is one atomic step at the server.
pub trait PeerRegistry: Send + Sync + fmt::Debug + 'static {
    /// Enters `instance` in `namespace` and counts this heartbeat; returns the others whose last
    /// heartbeat is younger than `ttl`.
    fn heartbeat<'a>(
        &'a self,
        namespace: &'a str,
        instance: InstanceId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Vec<Peer>, StoreError>>;

    /// Removes `instance` from the list; does nothing if it isn't there.
    fn leave<'a>(
        &'a self,
        namespace: &'a str,
        instance: InstanceId,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Another instance in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// Its id, in hexadecimal.
    pub instance: String,
    /// Number of its heartbeats so far.
    pub heartbeats: u64,
}

impl Peer {
    /// The peer with this id (in hexadecimal), after this many heartbeats.
    #[must_use]
    pub fn new(instance: impl Into<String>, heartbeats: u64) -> Self {
        Self { instance: instance.into(), heartbeats }
    }
}
