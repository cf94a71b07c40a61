//! The two kinds of guards: one with values, and one that is a gate alone.

use super::Value;
use crate::key::Key;
use crate::ports::Loader;

/// In the place of a value type: the guard caches nothing and loads nothing. It checks keys, and
/// takes writes so that new keys are admitted; see
/// [`Guard::gate_only`](super::Guard::gate_only). No value of this type exists.
#[derive(Clone, Copy, Debug)]
pub enum GateOnly {}

/// What a guard can be made of: any [`Value`], or [`GateOnly`].
pub trait GuardKind: sealed::Sealed + Send + Sync + 'static {
    /// True if the guard loads values, so that it needs a loader.
    const LOADS: bool;
}

impl<V: Value> GuardKind for V {
    const LOADS: bool = true;
}

impl GuardKind for GateOnly {
    const LOADS: bool = false;
}

mod sealed {
    pub trait Sealed {}
    impl<V: super::Value> Sealed for V {}
    impl Sealed for super::GateOnly {}
}

/// Never asked: what reads is not there for [`GateOnly`].
pub(super) struct NoLoader;

impl<K: Key, V: Send + 'static> Loader<K, V> for NoLoader {
    type Error = std::io::Error;

    async fn load(&self, _: &K) -> Result<Option<V>, Self::Error> {
        Err(std::io::Error::other("a gate has no loader"))
    }
}
