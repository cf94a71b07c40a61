//! The two kinds of guards: one with values, and one that is a gate alone.

use std::sync::Arc;

use super::Value;
use super::start::missing;
use crate::error::ConfigError;
use crate::key::Key;
use crate::loader::{DynLoader, erase};
use crate::ports::Loader;

/// In the place of a value type: the guard caches nothing and loads nothing. It checks keys, and
/// takes writes so that new keys are admitted; see
/// [`Guard::gate_only`](super::Guard::gate_only). No value of this type exists.
#[derive(Clone, Copy, Debug)]
pub enum GateOnly {}

/// What a guard can be made of: any [`Value`], or [`GateOnly`].
pub trait GuardKind<K: Key>: sealed::Sealed + Send + Sync + Sized + 'static {
    /// The loader, of those that were given.
    #[doc(hidden)]
    fn loader_of(given: Given<K, Self>) -> Result<Loaded<K, Self>, ConfigError>;
}

type Loaded<K, V> = Arc<dyn DynLoader<K, V>>;
type Given<K, V> = Option<Loaded<K, V>>;

mod sealed {
    pub trait Sealed {}
    impl<V: super::Value> Sealed for V {}
    impl Sealed for super::GateOnly {}
}

impl<K: Key, V: Value> GuardKind<K> for V {
    fn loader_of(given: Given<K, V>) -> Result<Loaded<K, V>, ConfigError> {
        given.ok_or_else(|| missing("loader"))
    }
}

impl<K: Key> GuardKind<K> for GateOnly {
    fn loader_of(_: Given<K, GateOnly>) -> Result<Loaded<K, GateOnly>, ConfigError> {
        Ok(erase(NoLoader))
    }
}

/// Never asked: what reads is not there for [`GateOnly`].
struct NoLoader;

impl<K: Key> Loader<K, GateOnly> for NoLoader {
    type Error = std::io::Error;

    async fn load(&self, _: &K) -> Result<Option<GateOnly>, Self::Error> {
        Err(std::io::Error::other("a gate has no loader"))
    }
}
